"""Two questions that the sources leave open, answered on recorded routing; prints the tables that the book shows.

`python -m tests.spec.ds4_questions transfer`: does a profiled hotlist transfer across prompt domains?
`python -m tests.spec.ds4_questions comparison`: how does ds4's seeded cache compare with a per-layer LRU?

Model gpt-oss-20b, 24 layers x 32 experts, top-4, decode alone. A hotlist is counted on the even requests of a domain,
and everything is measured on the odd ones. Replay mode: event.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice

from expertcache_spec.engines_ds4 import Entry, Formula, preload_count, seeding_order, seeds
from expertcache_spec.eviction import make
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.replay import run_event
from expertcache_spec.residency import Residency, Settings
from expertcache_spec.trace import Event

from .recordings import DATA

MODEL = Geometry(24, 32, 4)
KEYS = 24 * 32
DOMAINS = {
    "code": ("code_cs", None),
    "math": ("math", 24),
    "prose": ("prose_history_law", 24),
    "facts": ("instruct_facts", None),
}
"""Domain to its recording, and how many of its requests are taken; all of them without a number."""
SLOTS = (154, 230, 384)
"""A fifth, three tenths and a half of the keys."""
OPENING = 100
"""Tokens of the first conversation that are counted apart."""
REQUESTS = 6
"""Odd requests of a domain that are replayed; all of them are looked up in the static sets."""

Request = list[list[list[int]]]


@cache
def requests(domain: str) -> list[Request]:
    """The recorded requests of a domain: ids[token][layer][rank]."""
    name, number = DOMAINS[domain]
    with gzip.open(DATA / "gpt-oss-20b" / f"gptoss20b_{name}.jsonl.gz", "rt") as file:
        return [json.loads(line)["ids"] for line in islice(file, number)]


def count(some: Sequence[Request]) -> Counter[Key]:
    """How often each key was chosen."""
    found: Counter[Key] = Counter()
    for request in some:
        for layer in range(MODEL.layers):
            chosen = Counter(expert for token in request for expert in token[layer])
            found.update({Key(layer, expert): times for expert, times in chosen.items()})
    return found


@cache
def profile(domain: str) -> list[Entry]:
    """The hotlist of a domain's even requests: hits falling, then layer and expert rising."""
    hits = count(requests(domain)[::2])
    return [Entry(*key, hits[key]) for key in sorted(hits, key=lambda key: (-hits[key], key))]


def covered(profiled: str, asked: Counter[Key], slots: int) -> int:
    """The lookups that a static set of the hottest `slots` keys serves."""
    return sum(asked[Key(entry.layer, entry.expert)] for entry in profile(profiled)[:slots])


def transfer(domains: Sequence[str] = tuple(DOMAINS)) -> Iterator[str]:
    """Static sets: the share of lookups that the hottest keys of one domain serve in another, in percent."""
    yield f"{'slots':>5} {'asked in':<8} {'lookups':>8} {'chance':>7} {'itself':>7} " + " ".join(
        f"{name:>7}" for name in DOMAINS
    )
    for slots in SLOTS:
        for domain in domains:
            asked = count(requests(domain)[1::2])
            lookups = asked.total()
            itself = sum(sorted(asked.values(), reverse=True)[:slots])
            served = [slots * lookups / KEYS, itself, *(covered(name, asked, slots) for name in DOMAINS)]
            yield f"{slots:>5} {domain:<8} {lookups:>8} " + " ".join(f"{100 * hits / lookups:>7.2f}" for hits in served)


def served(
    domain: str, policy: str, scope: str, slots: int, profiled: str = "", formula: Formula = "scaled"
) -> tuple[int, int, int]:
    """Lookups, hits, and hits among the first tokens, of the odd requests, each a conversation of its own.

    ds4 zeroes hotness when a conversation begins and seeds the hotlist once, while the cache is not full.
    """
    settings = Settings(scope=scope, touch="hits_first", repeats="ignore")  # type: ignore[arg-type]
    parameters = {"reset_at": "never"} if policy == "route-hotness" else {}
    machine = Residency(MODEL, Budget(slots=slots), make(policy, parameters=parameters), settings)
    opening = 0
    for stream, request in enumerate(requests(domain)[1::2][:REQUESTS]):
        machine.reset("history")
        if profiled and stream == 0:
            listed = seeding_order(seeds(profile(profiled), MODEL, preload_count(slots, MODEL), formula))
            for key in machine.seed([seed.key for seed in listed], [seed.priority for seed in listed]).reads:
                machine.complete(key)
        for number, token in enumerate(request):
            for layer, ids in enumerate(token):
                step = run_event(machine, Event(layer, (tuple(ids),), stream, number))
                opening += len(step.hits) if stream == 0 and number < OPENING else 0
    total = machine.counters.total()
    return total.lookups, total.hits, opening


def rows(domain: str) -> Iterator[tuple[str, str, str, str, Formula]]:
    """What is compared: a name, the policy, its scope, the hotlist and its formula."""
    yield "LRU per layer", "lru", "layer", "", "scaled"
    yield "LRU global", "lru", "global", "", "scaled"
    yield "route-hotness, cold", "route-hotness", "global", "", "scaled"
    for formula in ("scaled", "rank", "hits"):
        yield f"route-hotness, {domain}, {formula}", "route-hotness", "global", domain, formula  # type: ignore[misc]
    for other in DOMAINS:
        if other != domain:
            yield f"route-hotness, {other}, scaled", "route-hotness", "global", other, "scaled"
    yield f"LRU global, {domain}", "lru", "global", domain, "scaled"


def comparison(domains: Sequence[str] = tuple(DOMAINS), sizes: Sequence[int] = SLOTS) -> Iterator[str]:
    """Replays: hits in percent over all, and over the first tokens of the first conversation."""
    yield f"{'slots':>5} {'asked in':<8} {'cache':<30} {'lookups':>8} {'hits':>8} {'hit %':>7} {'first %':>8}"
    for slots in sizes:
        for domain in domains:
            first = min(OPENING, len(requests(domain)[1])) * MODEL.token_cycle_slots
            for name, *how in rows(domain):
                lookups, hits, opening = served(domain, how[0], how[1], slots, how[2], how[3])  # type: ignore[arg-type]
                shares = f"{100 * hits / lookups:>7.2f} {100 * opening / first:>8.2f}"
                yield f"{slots:>5} {domain:<8} {name:<30} {lookups:>8} {hits:>8} {shares}"


if __name__ == "__main__":
    print("\n".join({"transfer": transfer, "comparison": comparison}[sys.argv[1]]()))
