"""A real engine, row by row: BigMoeOnEdge's own recordings, and the near misses that must fail (TARGETS 1)."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import attrs
import pytest

from expertcache_spec.engines import BIGMOE_ON_EDGE, PROFILES, Profile, mismatches, profile
from expertcache_spec.errors import InvalidTrace
from expertcache_spec.model import Budget, Key, parse_size
from expertcache_spec.replay import Replay, as_dict
from expertcache_spec.trace import Trace, decode_trace

from . import recordings

BUDGET = Budget(bytes=parse_size("4000MiB").bytes)
TOTALS = ("lookups", "hits", "evictions", "bytes_read", "peak_bytes")
EXACT: dict[str, dict[str, int]] = {
    "qwen": dict(zip(TOTALS, (39_526, 29_597, 8_469, 28_535_648_256, 4_387_774_464), strict=True)),
    "gemma": dict(zip(TOTALS, (24_578, 18_872, 4_645, 22_585_964_544, 4_467_606_528), strict=True)),
}


def replayed(trace: Trace, policy: str = "lru", **changed: Any) -> tuple[int, dict[str, Any]]:
    """How many keys differ from the recording under the profile with some settings changed; and the result."""
    run = Replay(trace, policy, BUDGET, attrs.evolve(BIGMOE_ON_EDGE.settings, **changed))
    sizes = trace.geometry.record_bytes
    assert sizes is not None
    pairs = zip(run.events, run, strict=True)
    return sum(len(mismatches(n, event, step, sizes)) for n, (event, step) in enumerate(pairs)), as_dict(run.result())


@pytest.mark.rule("XC-ENGINE-001", "XC-RES-025", "XC-METRIC-009", "XC-METRIC-011")
@pytest.mark.parametrize("name", EXACT)
def test_the_profile_reproduces_every_recorded_row_and_every_total(name: str) -> None:
    differing, result = replayed(recordings.bigmoe(name))
    assert differing == 0
    assert {total: result[total] for total in EXACT[name]} == EXACT[name]


@pytest.mark.rule("XC-ENGINE-001")
@pytest.mark.parametrize(
    ("policy", "changed", "differing"),
    [
        pytest.param("fifo", {}, {"qwen": 4249, "gemma": 2345}, id="FIFO"),
        pytest.param("lru", {"repeats": "ignore"}, {"qwen": 7, "gemma": 5}, id="repeats do not promote"),
        pytest.param("lru", {"touch": "hits_first"}, {"qwen": 3, "gemma": 1}, id="hits before misses"),
    ],
)
@pytest.mark.parametrize("name", EXACT)
def test_a_near_miss_differs_in_exactly_so_many_rows(
    policy: str, changed: dict[str, str], differing: dict[str, int], name: str
) -> None:
    assert replayed(recordings.bigmoe(name), policy, **changed)[0] == differing[name]


@pytest.mark.rule("XC-ENGINE-001", "XC-RES-010", "XC-RES-025")
@pytest.mark.parametrize("name", EXACT)
def test_evicting_before_the_load_differs_from_the_engine_in_its_peak_only(name: str) -> None:
    # With leases, reserve chooses the same victims as trim; what the rows cannot tell apart, the peak does.
    differing, result = replayed(recordings.bigmoe(name), room="reserve")
    assert differing == 0
    assert BUDGET.bytes is not None
    assert result["peak_bytes"] <= BUDGET.bytes < EXACT[name]["peak_bytes"]
    assert {t: result[t] for t in EXACT[name] if t != "peak_bytes"} == {
        t: n for t, n in EXACT[name].items() if t != "peak_bytes"
    }


def key_by_key(trace: Trace) -> int:
    """Rows that differ when every key evicts for itself, the event's other keys unprotected."""
    assert trace.geometry.record_bytes is not None
    assert BUDGET.bytes is not None
    sizes, used, differing = trace.geometry.record_bytes, 0, 0
    recency: OrderedDict[Key, None] = OrderedDict()
    for event in trace.events:
        seen: dict[Key, tuple[bool, int]] = {}
        for key in event.selections():
            if key in recency:
                recency.move_to_end(key)
                seen.setdefault(key, (True, 0))
            elif key not in seen:
                while used + sizes[key.layer] > BUDGET.bytes:
                    used -= sizes[recency.popitem(last=False)[0].layer]
                recency[key] = None
                used += sizes[key.layer]
                seen[key] = (False, sizes[key.layer])
        assert event.recorded is not None
        rows = zip(event.keys, event.recorded.hits, event.recorded.bytes, strict=True)
        differing += sum(seen[key] != (hit, read) for key, hit, read in rows)
    return differing


@pytest.mark.rule("XC-ENGINE-001", "XC-RES-001", "XC-RES-005")
@pytest.mark.parametrize(("name", "differing"), [("qwen", 5), ("gemma", 9)])
def test_the_published_5_and_9_rows_are_those_of_key_by_key_eviction_without_leases(name: str, differing: int) -> None:
    # Published as "evict before load"; what differs is that a key evicts keys of its own event.
    assert key_by_key(recordings.bigmoe(name)) == differing


# Decode hit rates in percent published at 4000 MiB (survey of policies, 9.2, to 0.05 points), and the hits behind them
# when repeats promote, as in the engine. The survey lets them not: test_survey_rates.py has its whole table.
PUBLISHED = [
    pytest.param("qwen", "lru", 80.30, 29_597, id="qwen-lru"),
    pytest.param("qwen", "lfu", 80.80, 29_784, id="qwen-lfu"),
    pytest.param("qwen", "belady", 92.72, 34_179, id="qwen-belady"),
    pytest.param("gemma", "lru", 81.91, 18_872, id="gemma-lru"),
    pytest.param("gemma", "lfu", 83.43, 19_223, id="gemma-lfu"),
    pytest.param("gemma", "belady", 92.91, 21_406, id="gemma-belady"),
]


@pytest.mark.rule("XC-EVICT-020", "XC-EVICT-030", "XC-EVICT-031", "XC-EVICT-050", "XC-METRIC-005")
@pytest.mark.parametrize(("name", "policy", "percent", "hits"), PUBLISHED)
def test_published_decode_hit_rates_are_reproduced(name: str, policy: str, percent: float, hits: int) -> None:
    phases = replayed(recordings.bigmoe(name), policy)[1]["per_phase"]
    decode = [phases["decode-first-token"], phases["decode"]]
    assert sum(row["hits"] for row in decode) == hits
    assert 100 * hits / sum(row["lookups"] for row in decode) == pytest.approx(percent, abs=0.05)


@pytest.mark.rule("XC-ENGINE-002")
@pytest.mark.parametrize("known", PROFILES.values(), ids=PROFILES)
def test_a_profile_states_what_it_reproduces_from_what_and_what_is_only_read(known: Profile) -> None:
    assert profile(known.name) is known
    assert all(text.strip() for text in (known.engine, known.reproduces, known.evidence, known.read_only))


@pytest.mark.rule("XC-ENGINE-001")
def test_an_event_without_a_recording_cannot_be_compared() -> None:
    trace = decode_trace([[0]])
    run = Replay(trace, "lru", Budget(slots=1))
    with pytest.raises(InvalidTrace, match="no recording"):
        mismatches(0, trace.events[0], next(iter(run)), (1,))
