"""Variants: policies that differ from a known one in one sentence, as implementations get them wrong.

Each names the rule that it breaks. They are candidates when an implementation or a log must be identified
("sold as LFU, breaks ties by insertion"), never policies that anybody should choose.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from expertcache_spec.eviction import POLICIES, fifo, lfu, lru
from expertcache_spec.eviction import variant_counts as counts
from expertcache_spec.eviction import variant_estimates as estimates
from expertcache_spec.eviction import variant_queues as queues
from expertcache_spec.eviction.base import Declarative, Past, Policy
from expertcache_spec.eviction.cards import Card, Value
from expertcache_spec.eviction.counting.clock import Clock
from expertcache_spec.eviction.counting.heat_lru import most_cold_hits
from expertcache_spec.model import Key


@attrs.frozen
class Variant:
    """A changed rule: which policy it is sold as, the rule that it breaks, what it does (after "it"), and its form.

    build: takes the parameters of the policy by name; what is left out has its default. is_known: no
    candidate of its own when a log is identified, since what it does is another policy of the specification, the same
    one under another parameter, or the policy itself under the default parameters.
    """

    policy: str
    rule: str
    words: str
    build: Callable[..., Policy]
    is_known: bool = False

    @property
    def card(self) -> Card:
        """The variant as a policy, in its declarative form only."""
        sold_as = POLICIES[self.policy]
        return attrs.evolve(
            sold_as, name=f"{self.policy}, but {self.words}", rule=self.rule, declared=self.build, indexed=self.build,
            summary=self.words, cost="O(resident)",
        )  # fmt: skip


def _order(
    policy: str, rule: str, words: str, order: Callable[[Past, Key], tuple[Any, ...]], *, is_known: bool = False
) -> Variant:
    return Variant(policy, rule, words, lambda **given: Declarative(order), is_known)


def _rule(policy: str, rule: str, words: str, build: Callable[..., Policy], *, is_known: bool = False) -> Variant:
    """A changed class; `build` takes all parameters of the policy."""
    return Variant(policy, rule, words, lambda **given: build(**POLICIES[policy].complete(given)), is_known)


def _with(policy: str, rule: str, words: str, **fixed: Value) -> Variant:
    """The policy itself, with parameters that are not the claimed ones."""
    card = POLICIES[policy]
    return Variant(policy, rule, words, lambda **given: card.declared(**card.complete({**given, **fixed})), True)


def _aged(rule: Callable[..., Policy]) -> Callable[..., Policy]:
    return lambda every, places, clock: rule(every=every, places=places, clock=Clock(str(clock)))


def insert_at_the_old_end(past: Past, key: Key) -> tuple[Any, ...]:
    """LRU, but what was inserted and not touched since comes before everything else, the latest first."""
    fresh = past.uses[key] == 1
    return (not fresh, -past.touched[key] if fresh else past.touched[key])


VARIANTS: tuple[Variant, ...] = (
    _order("fifo", "XC-EVICT-010", "is LRU", lru.order, is_known=True),
    _order("lru", "XC-EVICT-021", "is FIFO: a hit does not refresh", fifo.order, is_known=True),
    _order("lru", "XC-EVICT-022", "inserts at the least recent end", insert_at_the_old_end),
    _order("lfu", "XC-EVICT-031", "drops the count at eviction", lfu.order_reset, is_known=True),
    _order("lfu", "XC-EVICT-032", "breaks ties by insertion", lambda p, k: (p.requests[k], p.inserted[k])),
    _order("lfu", "XC-EVICT-032", "breaks ties to the newest", lambda p, k: (p.requests[k], -p.touched[k])),
    _order("lfu", "XC-EVICT-033", "stops counting at 15", lambda p, k: (min(15, p.requests[k]), p.touched[k])),
    _order("lfu", "XC-EVICT-033", "counts hits only",
            lambda p, k: (p.requests[k] - p.inserts[k], p.touched[k])),
    _order("lfu-reset", "XC-EVICT-041", "keeps the count across evictions", lfu.order, is_known=True),
    _order("lfu-reset", "XC-EVICT-042", "breaks ties by insertion", lambda p, k: (p.uses[k], p.inserted[k])),
    _order("lfu-reset", "XC-EVICT-042", "breaks ties to the newest", lambda p, k: (p.uses[k], -p.touched[k])),
    _with("lfu-aged", "XC-EVICT-061", "never halves", every=0),
    _rule("lfu-aged", "XC-EVICT-061", "halves the counts of residents only", _aged(counts.OnlyResidentsAge)),
    _rule("lfu-aged", "XC-EVICT-062", "halves after counting", _aged(counts.AgesAfterCounting)),
    _with("lfu-aged", "XC-EVICT-064", "counts its period in events", clock="events"),
    _order("lfru", "XC-EVICT-067", "keeps scores as of the latest request, when every age is 1", lfu.order,
           is_known=True),
    _rule("lfru", "XC-EVICT-068", "rounds scores down to whole numbers", counts.WholeQuotients),
    _rule("lfru", "XC-EVICT-066", "drops the requests at eviction", counts.QuotientsOfResidents),
    _rule("heat-lru", "XC-EVICT-073", "keeps the hits across evictions",
          lambda hot, cold, zero: counts.HeatIsKept(most=most_cold_hits(hot, cold, zero))),
    _with("heat-lru", "XC-EVICT-075", "protects at the threshold", cold="below"),
    _rule("window", "XC-EVICT-081", "ends before the present token", counts.WindowEndsEarly),
    _rule("window", "XC-EVICT-082", "forgets uses at eviction", counts.EvictionEndsUses),
    _rule("random", "XC-EVICT-088", "draws without the seed", counts.NoSeed),
    _rule("clock", "XC-EVICT-091", "counts no hit", queues.HitIsForgotten),
    _rule("clock", "XC-EVICT-092", "starts every search from the first slot", queues.HandRestarts),
    _rule("clock", "XC-EVICT-093", "lets held keys pay", queues.HeldKeysPay),
    _with("clock", "XC-EVICT-094", "sets the bit at the insert", initial=1),
    _order("sieve", "XC-EVICT-141", "is LRU: a hit moves the key", lru.order, is_known=True),
    _rule("sieve", "XC-EVICT-141", "moves survivors to the new end", queues.SurvivorsMove),
    _rule("sieve", "XC-EVICT-142", "starts every search from the oldest key", queues.NoPlaceForTheHand),
    _rule("slru", "XC-EVICT-112", "protects at the insert", queues.ProtectsOnInsert),
    _rule("slru", "XC-EVICT-111", "demotes to the old end", queues.DemotesToTheOldEnd),
    _rule("arc", "XC-EVICT-116", "learns nothing from ghosts", queues.TargetStays),
    _rule("arc", "XC-EVICT-117", "lets ghosts return to T1", queues.GhostsReturnAsNew),
    _rule("two-q", "XC-EVICT-126", "promotes at a hit in A1in", queues.HitPromotes),
    _with("two-q", "XC-EVICT-127", "remembers no ghost", a1out=0.0),
    _with("s3-fifo", "XC-EVICT-133", "promotes after one hit", threshold=1),
    _with("s3-fifo", "XC-EVICT-135", "remembers no ghost", ghosts=0.0),
    _rule("route-hotness", "XC-EVICT-181", "counts the selections of residents only", estimates.CountsResidents),
    _rule("route-hotness", "XC-EVICT-182", "halves after counting", estimates.HalvesAfterCounting),
    _with("route-hotness", "XC-EVICT-184", "keeps the hotness of the last prompt", reset_at="never"),
    _rule("least-stale", "XC-EVICT-201", "begins a pass one event late", estimates.BoundaryIsLate, is_known=True),
    _rule("farthest-layer", "XC-EVICT-211", "goes by how long ago a layer ran", estimates.LooksBack, is_known=True),
    _rule("score", "XC-EVICT-221", "adds 1 for every selection", estimates.EveryChoiceIsOne),
    _rule("score", "XC-EVICT-222", "keeps the latest weight only", estimates.LatestOnly),
    _with("probability-visits", "XC-EVICT-231", "rounds products down", truncate=True),
    _with("probability-visits", "XC-EVICT-232", "takes the latest event for the matched pass", probability="latest"),
    _rule("hazard", "XC-EVICT-281", "learns from residents only", estimates.ResidentsTeach),
    _rule("popularity", "XC-EVICT-271", "learns from hits only", estimates.HitsTeach),
    _with("ewma-interval", "XC-EVICT-306", "takes the latest interval for the mean", weight=1),
    _rule("last-rank", "XC-EVICT-291", "ranks by first appearance", estimates.RanksByAppearance),
    _rule("recent-frequency", "XC-EVICT-301", "lets every layer move the window", estimates.OneWindow),
)  # fmt: skip
"""Every variant, by the policy that it is mistaken for."""
