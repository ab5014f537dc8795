"""Directed traces, one for each clause of a policy, and the mutants that they kill.

Totals hide errors: on recorded traces a count that saturates or a touch lost now and then changes nothing. Each mutant
below is a policy that a plausible mistake makes; some directed trace must tell it from the specification, step by step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pytest

from expertcache_spec.eviction import Declarative, Future, Past, Policy, make
from expertcache_spec.eviction.base import Order
from expertcache_spec.eviction.belady import Belady
from expertcache_spec.eviction.fifo import Fifo
from expertcache_spec.eviction.lru import Lru
from expertcache_spec.model import Budget, Key
from expertcache_spec.replay import run_event
from expertcache_spec.residency import Residency, Settings, Step
from expertcache_spec.trace import Event, Trace, decode_trace

from .running import experts, steps
from .test_residency import keys, load, machine


@attrs.frozen
class Directed:
    """A trace of one-row events, how many slots, and the victims of its last event."""

    policy: str
    events: list[list[int]]
    slots: int
    victims: list[int]


DIRECTED = {
    "fifo: a hit changes nothing": Directed("fifo", [[0], [1], [0], [2]], 2, [0]),
    "fifo: a reload is a new insert": Directed("fifo", [[0], [1], [2], [0], [3]], 2, [2]),
    "lru: every hit refreshes": Directed("lru", [[0], [1], [0], [2]], 2, [1]),
    "lru: the thousandth hit refreshes too": Directed("lru", [[0]] * 998 + [[1], [0], [2]], 2, [1]),
    "lru: keys of one event are stamped apart": Directed("lru", [[3, 1], [0]], 2, [3]),
    "lru: router order counts a hit where it stands": Directed("lru", [[1], [1, 0], [2]], 2, [1]),
    "lru: an old friend is new when it returns": Directed("lru", [[0], [0], [1], [2], [0], [3]], 2, [2]),
    "lfu: the fewest requests go": Directed("lfu", [[0], [0], [1], [2]], 2, [1]),
    "lfu: counts survive eviction": Directed("lfu", [[0], [0], [1], [1], [2], [0], [3]], 2, [1]),
    "lfu: counts grow while absent": Directed("lfu", [[0], [0], [1], [2], [1], [1], [3]], 2, [0]),
    "lfu: misses count like hits": Directed("lfu", [[0], [0], [1], [2], [1], [2]], 2, [0]),
    "lfu: a key not asked for twice starts at one": Directed("lfu", [[0], [0], [0], [1], [1], [2], [3]], 2, [2]),
    "lfu: ties go to the least recent, not to the first inserted": Directed("lfu", [[0], [1], [1], [0], [2]], 2, [1]),
    "lfu: nor to the most recent": Directed("lfu", [[0], [0], [1], [1], [2]], 2, [0]),
    "lfu: counts have no ceiling": Directed("lfu", [[0]] * 300 + [[1]] * 299 + [[0], [1], [2]], 2, [1]),
    "lfu-reset: an insert starts at one": Directed("lfu-reset", [[0]] * 3 + [[1]] * 4 + [[2], [0], [3]], 2, [0]),
    "lfu-reset: ties go to the least recent": Directed("lfu-reset", [[0], [1], [1], [0], [2]], 2, [1]),
    "belady: the latest next use goes": Directed("belady", [[0], [1], [2], [0], [1]], 2, [0]),
    "belady: what is never used again goes first": Directed("belady", [[1], [0], [2], [1]], 2, []),
    "belady: ties go to the lowest key": Directed("belady", [[2], [1], [0]], 2, [1]),
    "belady: events count, not keys": Directed("belady", [[2, 3], [0], [1, 3, 2]], 3, [0]),
}  # fmt: skip


def trace_of(case: Directed) -> Trace:
    """The trace, over ten experts."""
    return decode_trace(case.events, experts=10)


@pytest.mark.rule(
    "XC-EVICT-010", "XC-EVICT-020", "XC-EVICT-021", "XC-EVICT-022", "XC-EVICT-030", "XC-EVICT-031", "XC-EVICT-032",
    "XC-EVICT-033", "XC-EVICT-040", "XC-EVICT-041", "XC-EVICT-042", "XC-EVICT-050",
)  # fmt: skip
@pytest.mark.parametrize("case", DIRECTED.values(), ids=DIRECTED)
@pytest.mark.parametrize("form", ["indexed", "declarative"])
def test_a_directed_trace_ends_with_these_victims(case: Directed, form: Any) -> None:
    assert experts(steps(trace_of(case), case.policy, Budget(slots=case.slots), form=form)[-1].victims) == case.victims


@pytest.mark.rule("XC-EVICT-033", "XC-RES-002")
@pytest.mark.parametrize("form", ["indexed", "declarative"])
def test_a_repeat_inside_an_event_counts_one_request(form: Any) -> None:
    events = [
        Event(0, ((0,), (0,), (0,)), phase="prefill"),
        *(Event(0, ((e,),), pass_index=n) for n, e in enumerate((1, 1, 2), 1)),
    ]
    trace = Trace(decode_trace([[2]]).geometry, tuple(events))
    assert experts(steps(trace, "lfu", Budget(slots=2), form=form)[-1].victims) == [0]


@pytest.mark.rule("XC-RES-019")
@pytest.mark.parametrize("policy", ["fifo", "lru", "lfu", "lfu-reset"])
def test_unpin_changes_nothing_but_the_protection(policy: str) -> None:
    pinned, plain = machine(3, policy), machine(3, policy)
    for cache in (pinned, plain):
        load(cache, 0)
        load(cache, 1)
        load(cache, 2)
        if cache is pinned:
            cache.pin(Key(0, 0))
            cache.unpin(Key(0, 0))
    assert pinned.resize(Budget(slots=0)) == plain.resize(Budget(slots=0)) == keys(0, 1, 2)


# ---------------------------------------------------------------------------------------------- mutants


class LruThatNeverTouches(Lru):
    def settle(self, keys: Sequence[Key]) -> None:
        pass


class LruThatLosesEveryThousandthTouch(Lru):
    touches = 0

    def settle(self, keys: Sequence[Key]) -> None:
        for key in keys:
            self.touches += 1
            if self.touches % 1000:
                super().settle([key])


class LruThatStampsEventsNotKeys(Lru):
    def settle(self, keys: Sequence[Key]) -> None:
        super().settle(sorted(keys))


class LruThatTouchesMissesFirst(Lru):
    turn = Policy.turn

    def settle(self, keys: Sequence[Key]) -> None:
        super().settle(sorted(keys, key=lambda key: key in self.asked))

    def hits(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        self.asked = set(keys)


class FifoThatReinsertsHits(Fifo):
    turn = Policy.turn

    def hits(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        for key in keys:
            self.queue.remove(key)
            self.queue.append(key)


class BeladyThatNeverLooksAgain(Belady):
    def hits(self, keys: Sequence[Key], stamps: Mapping[Key, int]) -> None:
        pass


def declared(name: str, order: Order, *, offline: bool = False) -> type[Any]:
    """A mutant that is a rule: the order functions of the chapter with one thing changed."""

    def build(events: Sequence[Event] = ()) -> Policy:
        return Declarative(order, Past(future=list(events) if offline else None))

    return type(name, (), {"offline": offline, "build": staticmethod(build)})


def soonest(past: Past, key: Key) -> tuple[Any, ...]:
    return (past.next_use(key),)


def highest(past: Past, key: Key) -> tuple[Any, ...]:
    return (-past.next_use(key), -key.layer, -key.expert)


MUTANTS: dict[str, list[type[Any]]] = {
    "fifo": [FifoThatReinsertsHits],
    "lru": [
        LruThatNeverTouches, LruThatLosesEveryThousandthTouch, LruThatStampsEventsNotKeys, LruThatTouchesMissesFirst,
    ],
    "lfu": [
        declared("LfuThatSaturates", lambda past, key: (min(15, past.requests[key]), past.touched[key])),
        declared("LfuThatCountsHitsOnly", lambda past, key: (past.requests[key] - past.inserts[key],)),
        declared("LfuThatForgetsTheEvicted", lambda past, key: (past.uses[key], past.touched[key])),
        declared("LfuThatBreaksTiesByInsertion", lambda past, key: (past.requests[key], past.inserted[key])),
        declared("LfuThatBreaksTiesTowardsTheRecent", lambda past, key: (past.requests[key], -past.touched[key])),
    ],
    "lfu-reset": [
        declared("LfuResetThatKeepsCounts", lambda past, key: (past.requests[key], past.touched[key])),
        declared("LfuResetThatBreaksTiesByInsertion", lambda past, key: (past.uses[key], past.inserted[key])),
    ],
    "belady": [
        declared("BeladyThatEvictsTheSoonest", soonest, offline=True),
        declared("BeladyThatBreaksTiesTowardsTheHighest", highest, offline=True),
        BeladyThatNeverLooksAgain,
    ],
}  # fmt: skip


def replayed_with(policy: Policy, case: Directed) -> list[Step]:
    """The steps of the directed trace under that very policy object."""
    trace = trace_of(case)
    cache = Residency(trace.geometry, Budget(slots=case.slots), lambda: policy, Settings())
    return [run_event(cache, event) for event in trace.events]


def fresh(mutant: type[Any], case: Directed) -> Policy:
    """The mutant, ready for that trace."""
    events = trace_of(case).events
    if hasattr(mutant, "build"):
        return mutant.build(events)  # type: ignore[no-any-return]
    made: Policy = mutant(Future(events)) if issubclass(mutant, Belady) else mutant()
    return made


@pytest.mark.parametrize(
    ("policy", "mutant"),
    [pytest.param(name, mutant, id=mutant.__name__) for name, mutants in MUTANTS.items() for mutant in mutants],
)
def test_some_directed_trace_kills_each_mutant(policy: str, mutant: type[Any]) -> None:
    cases = {name: case for name, case in DIRECTED.items() if case.policy == policy}
    killed = [
        name
        for name, case in cases.items()
        if replayed_with(fresh(mutant, case), case) != replayed_with(real(case), case)
    ]
    assert killed


def real(case: Directed) -> Policy:
    """The specification's policy, ready for that trace."""
    return make(case.policy, future=trace_of(case).events)()


def test_the_classics_have_directed_traces_and_mutants() -> None:
    # The others have vectors by hand and mutants of their own, in the tests of their families.
    assert set(MUTANTS) == {case.policy for case in DIRECTED.values()} == {"fifo", "lru", "lfu", "lfu-reset", "belady"}
