"""A practitioner's report on ds4, its arithmetic and its counters (V4.1 Flash Q2 on an M5 Pro with 48 GB).

256 decoded tokens: 51,227 hits, 10,213 misses, 94.67 GiB, 6,206 reloads, 4.97 s of read wall; Belady has 5,481 misses.
In paired runs of 64 tokens: 4,488 misses and 24.18 GiB.
"""

from __future__ import annotations

from random import Random

import pytest

from expertcache_spec.engines import DS4_B
from expertcache_spec.engines_ds4 import GIB
from expertcache_spec.metrics import broken_identities
from expertcache_spec.model import Budget, Geometry, Key, format_size, parse_size
from expertcache_spec.replay import Replay
from expertcache_spec.trace import Event, Trace

V41_FLASH_Q2 = 9_953_280
MODEL = Geometry(40, 384, 6, (V41_FLASH_Q2,) * 40)
SLOTS = 1_889


@pytest.mark.rule("XC-METRIC-001", "XC-MODEL-007")
def test_256_tokens_of_40_layers_and_6_experts_are_61440_lookups_of_which_83_percent_hit() -> None:
    lookups = 256 * MODEL.token_cycle_slots
    assert lookups == 61_440 == 51_227 + 10_213
    assert round(100 * 51_227 / lookups, 2) == 83.38


@pytest.mark.rule("XC-METRIC-009")
def test_every_miss_of_the_long_run_was_one_read() -> None:
    gate = up = 3_041_280
    assert gate + up + 3_870_720 == V41_FLASH_Q2
    assert format_size(10_213 * V41_FLASH_Q2, "GiB") == "94.67 GiB"


@pytest.mark.rule("XC-MODEL-003", "XC-MODEL-005")
def test_1889_slots_are_17_and_a_half_gib_rounded_and_not_the_records_that_fit_into_it() -> None:
    assert format_size(SLOTS * V41_FLASH_Q2) == "17.51 GiB"
    assert parse_size("17.5GiB").bytes // V41_FLASH_Q2 == 1_887


@pytest.mark.rule("XC-METRIC-002", "XC-METRIC-010")
def test_4007_misses_were_first_loads_and_4732_more_than_belady_has() -> None:
    assert 10_213 - 6_206 == 4_007
    assert 10_213 - 5_481 == 4_732
    assert 5_481 >= 4_007  # not even Belady is spared the first load of a record


@pytest.mark.rule("XC-METRIC-009")
def test_19_gib_a_second_is_no_flash_so_the_reads_were_warm() -> None:
    read = 10_213 * V41_FLASH_Q2
    assert format_size(read, "GiB") == "94.67 GiB"
    rate = read / 4.97
    assert round(rate / GIB) == 19
    assert rate > 17e9  # the most that any engine of the survey reports for a drive, with reads in parallel


@pytest.mark.rule("XC-METRIC-009", "XC-METRIC-003")
def test_the_short_run_does_not_multiply_because_1880_installs_were_no_reads() -> None:
    assert format_size(4_488 * V41_FLASH_Q2, "GiB") == "41.60 GiB"
    records = round(24.18 * GIB / V41_FLASH_Q2)
    assert records == 2_608
    assert 4_488 - records == 1_880
    assert SLOTS - 1_880 == 9  # about one fill of the cache


def sticky(tokens: int, seed: int = 1) -> Trace:
    """Decode of that model in which an expert is asked for again with probability 0.45."""
    random, last, events = Random(seed), dict[int, list[int]](), list[Event]()
    for number in range(tokens):
        for layer in MODEL.routed:
            row = [expert for expert in last.get(layer, ()) if random.random() < 0.45]
            row += random.sample([e for e in range(0, 384, 3) if e not in row], 6 - len(row))
            last[layer] = row
            events.append(Event(layer, (tuple(row),), pass_index=number))
    return Trace(MODEL, tuple(events))


@pytest.mark.rule("XC-METRIC-001", "XC-METRIC-003", "XC-METRIC-009", "XC-RES-020")
def test_our_counters_keep_installs_demand_reads_and_seeds_apart() -> None:
    # A fill of the cache that costs no read (ds4 copies it from the layers that the prompt has mapped) and 16 tokens.
    trace, found = sticky(16), DS4_B.spelled
    run = Replay(trace, found.card, Budget(slots=SLOTS), DS4_B.settings, parameters=found.parameters)
    fill = [Key(layer, expert) for expert in range(48) for layer in MODEL.routed][:SLOTS]
    for key in run.machine.seed(fill).reads:
        run.machine.complete(key)
    list(run)
    counters, total = run.machine.counters, run.result().total
    assert total.bytes_read == total.misses * V41_FLASH_Q2
    assert (counters.seeds, counters.seed_bytes) == (SLOTS, SLOTS * V41_FLASH_Q2)
    # What ds4 calls misses are installs, and its bytes are those of the demand reads: they do not multiply.
    installs = total.admissions + counters.seeds
    assert installs * V41_FLASH_Q2 != total.bytes_read
    assert (installs - counters.seeds) * V41_FLASH_Q2 == total.bytes_read
    assert broken_identities(counters, run.machine.occupancy_change()) == []
    assert total.hits > 0
    assert total.evictions > 0
