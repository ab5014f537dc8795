"""Keys, geometry, budgets and sizes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expertcache_spec.errors import InvalidBudget, InvalidModel, UnknownName
from expertcache_spec.eviction import make
from expertcache_spec.model import UNITS, Budget, Geometry, Key, format_size, parse_size, quotas
from expertcache_spec.replay import replay
from expertcache_spec.residency import Residency, Settings
from expertcache_spec.trace import decode_trace

from .strategies import geometries


@pytest.mark.rule("XC-MODEL-001")
def test_equal_expert_numbers_of_different_layers_are_different_keys() -> None:
    assert Key(5, 20) != Key(6, 20)
    assert sorted([Key(1, 0), Key(0, 3), Key(0, 1)]) == [Key(0, 1), Key(0, 3), Key(1, 0)]
    assert replay(decode_trace([[0], [0]], layers=2), "lru", Budget(slots=2)).total.hits == 0


@pytest.mark.rule("XC-MODEL-001")
@pytest.mark.parametrize("far", [1 << 8, 1 << 16, 1 << 32])
def test_wide_expert_numbers_never_alias(far: int) -> None:
    # bugs 17: a number truncated to 8, 16 or 32 bits would call the second request a hit.
    trace = decode_trace([[1], [1 + far]], experts=2 + far)
    assert replay(trace, "lru", Budget(slots=2)).total.misses == 2


@pytest.mark.parametrize(
    "shape",
    [
        {"layers": 0, "experts": 1, "top_k": 1},
        {"layers": 1, "experts": 0, "top_k": 0},
        {"layers": 1, "experts": 4, "top_k": 5},
        {"layers": 1, "experts": 4, "top_k": True},
        {"layers": 1.0, "experts": 4, "top_k": 1},
        {"layers": 2, "experts": 4, "top_k": 1, "record_bytes": (1,)},
        {"layers": 2, "experts": 4, "top_k": 1, "record_bytes": 100},
        {"layers": 2, "experts": 4, "top_k": 1, "routed": 1},
        {"layers": 1, "experts": 4, "top_k": 1, "record_bytes": (0,)},
        {"layers": 1, "experts": 4, "top_k": 1, "record_bytes": (1.5,)},
        {"layers": 2, "experts": 4, "top_k": 1, "routed": ()},
        {"layers": 2, "experts": 4, "top_k": 1, "routed": (1, 0)},
        {"layers": 2, "experts": 4, "top_k": 1, "routed": (0, 2)},
        {"layers": 2, "experts": 4, "top_k": 1, "routed": (0, 0)},
        {"layers": 2, "experts": 4, "top_k": 1, "routed": (0, 0.5)},
        {"layers": 2, "experts": 4, "top_k": 1, "routed": (0, True)},
    ],
)
def test_a_geometry_that_no_model_has_is_refused(shape: dict[str, Any]) -> None:
    with pytest.raises(InvalidModel, match="Cure: "):
        Geometry(**shape)


@pytest.mark.rule("XC-MODEL-004")
def test_a_dense_layer_may_have_no_record() -> None:
    geometry = Geometry(3, 4, 2, (0, 5, 7), routed=(1, 2))
    assert (geometry.token_cycle_slots, geometry.token_cycle_bytes) == (4, 24)
    assert list(geometry.keys())[:2] == [Key(1, 0), Key(1, 1)]


@pytest.mark.rule("XC-MODEL-004")
def test_each_record_is_charged_its_own_size() -> None:
    # bugs 32: two-byte and four-byte records; by count four of them would hold 12 bytes of a budget of 8.
    trace = decode_trace([[0, 1], [0, 1]], layers=2)
    sized = Geometry(2, 2, 2, (2, 4))
    cache = Residency(sized, Budget(bytes=8), make("lru"))
    victims = []
    for event in trace.events:
        selection = cache.select(event)
        victims += selection.victims
        for key in selection.reads:
            cache.complete(key)
        cache.release(selection.ticket)
    assert victims == [Key(0, 0), Key(0, 1)]
    assert cache.usage.bytes == 8


@pytest.mark.rule("XC-MODEL-004")
def test_a_byte_budget_over_unknown_sizes_is_an_error() -> None:
    unknown = Geometry(1, 4, 1)
    with pytest.raises(InvalidBudget, match="unknown"):
        Residency(unknown, Budget(bytes=8), make("lru"))
    cache = Residency(unknown, Budget(slots=2), make("lru"))
    with pytest.raises(InvalidBudget, match="unknown"):
        cache.resize(Budget(slots=2, bytes=8))
    with pytest.raises(InvalidBudget, match="unknown"):
        unknown.size(0)


@pytest.mark.rule("XC-MODEL-003")
@pytest.mark.parametrize(("budget", "kept"), [(Budget(3, 10), 3), (Budget(5, 4), 2), (Budget(2, 5), 2)])
def test_of_slots_and_bytes_the_tighter_wins(budget: Budget, kept: int) -> None:
    trace = decode_trace([[e] for e in range(6)], record_bytes=2)
    assert replay(trace, "lru", budget).counters.peak_slots == kept


@pytest.mark.rule("XC-MODEL-003")
@pytest.mark.parametrize("budget", [{}, {"slots": -1}, {"bytes": -1}, {"slots": 1.0}, {"slots": True}])
def test_a_budget_that_cannot_be_read_is_refused(budget: dict[str, Any]) -> None:
    with pytest.raises(InvalidBudget):
        Budget(**budget)


@pytest.mark.rule("XC-MODEL-006")
def test_the_first_layers_take_the_remainder_of_the_quotas() -> None:
    assert quotas(5, 3) == [2, 2, 1]  # policies.md 35.9
    geometry = Geometry(4, 8, 1, (1, 1, 1, 1), routed=(0, 1, 3))
    assert Budget(5, 7).split("layer", geometry) == {0: Budget(2, 3), 1: Budget(2, 2), 3: Budget(1, 2)}
    assert Budget(5).split("global", geometry) == {-1: Budget(5)}


@pytest.mark.rule("XC-MODEL-006")
@given(st.integers(0, 1000), st.integers(1, 100))
def test_quotas_differ_by_at_most_one_and_sum_to_the_capacity(capacity: int, layers: int) -> None:
    shares = quotas(capacity, layers)
    assert sum(shares) == capacity
    assert shares == sorted(shares, reverse=True)
    assert shares[0] - shares[-1] <= 1


@pytest.mark.rule("XC-MODEL-005")
@pytest.mark.parametrize(
    ("text", "count", "unit"),
    [
        ("4000MiB", 4_194_304_000, "MiB"),
        ("20GB", 20_000_000_000, "GB"),
        ("20GiB", 21_474_836_480, "GiB"),
        ("17.5 GiB", 18_790_481_920, "GiB"),
        ("512 B", 512, "B"),
        ("1.5kB", 1500, "kB"),
        ("1KB", 1000, "KB"),
        (" 2TiB ", 2_199_023_255_552, "TiB"),
    ],
)
def test_a_size_is_a_number_and_a_unit(text: str, count: int, unit: str) -> None:
    size = parse_size(text)
    assert (size.bytes, size.unit) == (count, unit)


@pytest.mark.rule("XC-MODEL-005")
@pytest.mark.parametrize(
    "text",
    ["", "20", "GB", "20 gb", "20g", "-1GB", "1e9B", "0.5B", "1.23456789B", "NaNGB", "20 GiB GiB", "٢GB", "1_0GB"],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidBudget, match="size"):
        parse_size(text)


@pytest.mark.rule("XC-MODEL-005")
def test_the_refusal_of_a_near_miss_names_the_units_that_were_meant() -> None:
    with pytest.raises(InvalidBudget, match="GB or GiB"):
        parse_size("20gb")


@pytest.mark.rule("XC-MODEL-005")
def test_one_parser_and_one_printer_agree() -> None:
    # bugs 56: a 20 GB cap was announced as 21.47 GiB.
    assert format_size(parse_size("20GiB").bytes) == "20.00 GiB"
    assert format_size(parse_size("20GB").bytes, "GB") == "20.00 GB"
    assert format_size(1023) == "1023 B"
    with pytest.raises(UnknownName, match="one of B, kB"):
        format_size(1, "XB")


@pytest.mark.rule("XC-MODEL-005")
@given(st.integers(0, 10**6), st.sampled_from(sorted(UNITS)))
def test_whole_numbers_of_every_unit_survive_the_round_trip(count: int, unit: str) -> None:
    size = parse_size(f"{count}{unit}")
    assert size.bytes == count * UNITS[unit]
    assert parse_size(format_size(size.bytes, unit)).bytes == size.bytes


@pytest.mark.rule("XC-MODEL-002")
def test_a_record_takes_its_whole_size_and_gives_its_whole_size_back() -> None:
    # bugs 13: what an evicted key had of parts must all go.
    cache = Residency(Geometry(1, 2, 1, (7,)), Budget(bytes=7), make("lru"), Settings())
    for expert in (0, 1):
        selection = cache.select(decode_trace([[expert]]).events[0])
        cache.complete(Key(0, expert))
        cache.release(selection.ticket)
        assert (cache.usage.slots, cache.usage.bytes) == (1, 7)
    cache.reset("contents")
    assert (cache.usage.slots, cache.usage.bytes) == (0, 0)


@given(geometries())
def test_the_keys_of_a_model_are_all_its_pairs_in_order(geometry: Geometry) -> None:
    keys = list(geometry.keys())
    assert keys == sorted(set(keys))
    assert len(keys) == len(geometry.routed) * geometry.experts
