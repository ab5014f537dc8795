"""ds4 at its start: hotlists, priorities, seeding order, budgets, full layers (survey of the engine, section 3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expertcache_spec.engines import profile
from expertcache_spec.engines_ds4 import (
    AUTO_PRELOAD,
    GIB,
    VERSIONS,
    Entry,
    Seed,
    auto_whole_layers,
    cache_size,
    common_size,
    hotlist,
    plan,
    preload_count,
    priority,
    seeding_order,
    seeds,
    whole_layers,
)
from expertcache_spec.errors import InvalidBudget, InvalidTrace, UnknownName
from expertcache_spec.eviction import make
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.replay import run_event
from expertcache_spec.residency import Residency
from expertcache_spec.trace import Event

from .recordings import DATA

FLASH = Geometry(43, 256, 6)
FLASH_Q2 = 7_077_888
"""Bytes of one V4 Flash record: gate and up in IQ2_XXS, down in Q2_K; 6.75 MiB."""


def flash_list() -> list[Entry]:
    """The list that is built into the engine for DeepSeek V4 Flash, hottest first."""
    lines = (DATA / "ds4-hotlists" / "deepseek-v4-flash.tsv").read_text().splitlines()[1:]
    return [Entry(*map(int, line.split())) for line in lines]


# ---------------------------------------------------------------------------------------------- priorities


@pytest.mark.rule("XC-EVICT-190")
def test_scaled_priorities_run_from_32_down_to_1() -> None:
    found = [priority("scaled", remaining, 4096) for remaining in range(4096, 0, -1)]
    assert (found[0], found[-1]) == (32, 1)
    assert found == sorted(found, reverse=True)
    # 31 x remaining / 4096 reaches n first at the ceiling of 4096 n / 31: steps of 132 and 133 places below the head.
    assert found.count(32) == 1
    assert {found.count(value) for value in range(1, 32)} == {132, 133}
    # A list of 31 places or fewer does not go down to 1: the last of 31 has 2, the last of one has 32.
    assert [priority("scaled", 1, total) for total in (1, 10, 31, 32)] == [32, 4, 2, 1]


@pytest.mark.rule("XC-EVICT-190")
def test_rank_and_hits_are_not_scaled() -> None:
    assert [priority("rank", remaining, 4096, 7) for remaining in (4096, 1)] == [4096, 1]
    assert [priority("hits", remaining, 4096, 70_000) for remaining in (4096, 1)] == [70_000] * 2
    assert priority("hits", 1, 1, 1 << 40) == (1 << 32) - 1
    with pytest.raises(UnknownName, match="one of scaled, rank, hits"):
        priority("percent", 1, 1)  # type: ignore[arg-type]


@pytest.mark.rule("XC-EVICT-190")
def test_the_two_versions_lend_4096_and_32_to_the_hottest_entry() -> None:
    lent = {name: seeds(flash_list(), FLASH, 4096, version.built_in) for name, version in VERSIONS.items()}
    assert [seed.key for seed in lent["A"]] == [seed.key for seed in lent["B"]]
    assert {name: (found[0].priority, found[-1].priority) for name, found in lent.items()} == {
        "A": (4096, 1),
        "B": (32, 1),
    }


@pytest.mark.rule("XC-EVICT-191")
def test_what_is_no_key_or_was_named_before_uses_no_place() -> None:
    listed = [Entry(0, 1), Entry(0, 1, 9), Entry(7, 0), Entry(0, 99), Entry(1, 2), Entry(1, 3), Entry(1, 0)]
    assert seeds(listed, Geometry(2, 4, 1), 3, "rank") == [
        Seed(Key(0, 1), 3),
        Seed(Key(1, 2), 2),
        Seed(Key(1, 3), 1),
    ]
    assert seeds(listed, Geometry(2, 4, 1), 0, "rank") == []


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(1, 9))), st.integers(1, 20))
@pytest.mark.rule("XC-EVICT-190", "XC-EVICT-191")
def test_seeds_are_distinct_keys_of_the_model_with_falling_priorities(
    listed: list[tuple[int, int, int]], limit: int
) -> None:
    geometry = Geometry(3, 4, 1, routed=(0, 2))
    for formula in ("rank", "scaled"):
        found = seeds([Entry(*entry) for entry in listed], geometry, limit, formula)  # type: ignore[arg-type]
        assert len({seed.key for seed in found}) == len(found) <= limit
        assert {seed.key for seed in found} <= set(geometry.keys())
        lent = [seed.priority for seed in found]
        assert lent == sorted(lent, reverse=True)
        assert all(value >= 1 for value in lent)


@pytest.mark.rule("XC-EVICT-191")
def test_a_hotlist_file_is_read_in_its_order_without_its_zero_lines() -> None:
    text = ["# ds4 selected-id hotlist v1", "", "3 7 12 0.5", "0 1 0", "1 2 40", "  # tail"]
    assert list(hotlist(text)) == [Entry(3, 7, 12), Entry(1, 2, 40)]


@pytest.mark.rule("XC-EVICT-191")
def test_a_built_in_list_has_no_counts_and_says_so_in_its_first_line() -> None:
    assert list(hotlist(["layer\texpert", "3 7", "# tail", "1\t2"])) == [Entry(3, 7, 1), Entry(1, 2, 1)]
    text = (DATA / "ds4-hotlists" / "deepseek-v4-flash.tsv").read_text()
    assert list(hotlist(text.splitlines())) == flash_list()
    with pytest.raises(InvalidTrace, match=r"line 2: no hotlist entry '3 7 1'\. Cure: write: layer expert$"):
        list(hotlist(["layer expert", "3 7 1"]))
    with pytest.raises(InvalidTrace, match="line 2"):
        list(hotlist(["3 7 1", "layer expert"]))


@pytest.mark.rule("XC-EVICT-191")
@pytest.mark.parametrize("line", ["3 7", "3 7 x", "3 -7 2", "3 7 1 0.5 9", "3 7 ²", "3 7 " + "9" * 21])
def test_a_malformed_line_is_refused_by_its_number(line: str) -> None:
    with pytest.raises(InvalidTrace, match="line 2"):
        list(hotlist(["0 0 1", line]))


# ---------------------------------------------------------------------------------------------- order and number


@pytest.mark.rule("XC-EVICT-192")
def test_a_layer_is_seeded_from_its_tail_in_groups_of_six() -> None:
    listed = [Seed(Key(layer, expert), 1) for expert in range(8) for layer in (1, 0)]
    order = [seed.key for seed in seeding_order(listed)]
    one = [2, 3, 4, 5, 6, 7, 0, 1]
    assert order == [Key(0, expert) for expert in one] + [Key(1, expert) for expert in one]
    assert seeding_order([]) == []


@pytest.mark.rule("XC-EVICT-193")
@pytest.mark.parametrize(
    ("slots", "asked", "cold", "expected"),
    [(6000, None, False, 4096), (1889, None, False, 1889), (6000, 5000, False, 5000), (6000, 9000, False, 6000),
     (20_000, 20_000, False, 11_008), (6000, 0, False, 0), (6000, None, True, 0), (6000, 5000, True, 0)],
)  # fmt: skip
def test_as_much_is_preloaded_as_was_asked_for_or_4096(
    slots: int, asked: int | None, cold: bool, expected: int
) -> None:
    assert AUTO_PRELOAD == 4096
    assert preload_count(slots, FLASH, asked=asked, cold=cold) == expected


@pytest.mark.rule("XC-EVICT-192", "XC-EVICT-185", "XC-RES-020")
@pytest.mark.parametrize(("name", "gone_after"), [("A", 208), ("B", 96)])
def test_a_whole_seeded_start_is_gone_as_soon_as_its_priorities_say(name: str, gone_after: int) -> None:
    # 4342 slots are 32 GB of V4 Flash. Routing that never asks for a seeded record finds the first one hot until then.
    slots = plan(32 * GIB, FLASH_Q2, 43, 256).slots
    found = profile(f"ds4-{name.lower()}").spelled
    machine = Residency(
        FLASH, Budget(slots=slots), make(found.card, parameters=found.parameters), profile("ds4-a").settings
    )
    listed = seeds(flash_list(), FLASH, preload_count(slots, FLASH), VERSIONS[name].built_in)
    order = seeding_order(listed)
    seeded = machine.seed([seed.key for seed in order], [seed.priority for seed in order])
    for key in seeded.reads:
        machine.complete(key)
    assert (len(seeded.reads), seeded.ignored, seeded.refused) == (4096, 0, 0)
    assert machine.counters.total().misses == 0
    hot = machine.parts[-1].policy.hotness  # type: ignore[attr-defined]
    first = listed[0].key
    for number in range(gone_after + 1):
        assert hot.of.get(first, 0) > 0, number
        run_event(machine, Event(0, ((255,),), pass_index=number))
    assert first not in hot.of


# ---------------------------------------------------------------------------------------------- budgets


@pytest.mark.rule("XC-EVICT-194")
def test_32_gb_of_v4_flash_are_4342_slots_and_111_gb_are_the_whole_model() -> None:
    found = plan(32 * GIB, FLASH_Q2, 43, 256)
    assert (found.headroom_bytes / GIB, found.slots) == (3.375, 4342)
    assert 32 * GIB // FLASH_Q2 == 4854
    assert plan(111 * GIB, FLASH_Q2, 43, 256).slots == 11_008
    assert round(11_008 * FLASH_Q2 / GIB, 2) == 72.56


@pytest.mark.rule("XC-EVICT-194")
def test_headroom_is_two_layers_or_the_only_one_and_must_leave_a_record() -> None:
    assert plan(1000, 10, 1, 4).headroom_bytes == 40
    assert plan(90, 10, 5, 4) == (80, 0, 0, 1)
    for total in (0, 80, 89):
        with pytest.raises(InvalidBudget, match="80 bytes of prefill headroom"):
            plan(total, 10, 5, 4)


@pytest.mark.rule("XC-EVICT-194")
def test_a_cache_size_is_a_count_or_whole_gib() -> None:
    assert cache_size("4342") == Budget(slots=4342)
    assert cache_size("32GB") == cache_size("32gb") == Budget(bytes=32 << 30)
    for text in ("", "0", "0GB", "1.5GB", "-3", "3MB", "3 GB", "many", "٣GB"):
        with pytest.raises(InvalidBudget):
            cache_size(text)


@pytest.mark.rule("XC-EVICT-195")
def test_full_layers_give_way_until_one_more_layer_fits_beside_them() -> None:
    # Layers of 40 bytes; 100 bytes after the headroom hold one full layer and a cache of 60, which has room for one.
    assert [whole_layers(asked, 100, 10, 5, 4) for asked in (0, 1, 2, 9)] == [0, 1, 1, 1]
    assert whole_layers(9, 39, 10, 5, 4) == 0
    assert whole_layers(9, 10_000, 10, 5, 4) == 5
    assert plan(180, 10, 5, 4, full_layers=2) == (80, 1, 40, 6)


@given(st.integers(0, 3000), st.integers(1, 20), st.integers(1, 6), st.integers(1, 6), st.integers(0, 9))
@pytest.mark.rule("XC-EVICT-194", "XC-EVICT-195")
def test_a_plan_spends_no_more_than_the_budget_and_full_layers_leave_one_layer(
    total: int, record: int, layers: int, experts: int, asked: int
) -> None:
    try:
        found = plan(total, record, layers, experts, asked)
    except InvalidBudget:
        assert total < (min(2, layers) * experts + 1) * record
        return
    assert found.headroom_bytes + found.full_bytes + found.slots * record <= total
    assert found.full_layers <= asked
    if found.full_layers:
        assert total - found.headroom_bytes - found.full_bytes >= experts * record
    elif asked:
        assert total - found.headroom_bytes < 2 * experts * record


@pytest.mark.rule("XC-EVICT-195")
def test_version_a_keeps_a_seventh_of_the_budget_or_10_gib_in_full_layers() -> None:
    # GLM 5.2 Q2_K: 256 records of 12,386,304 bytes are 2.95 GiB a layer.
    assert [auto_whole_layers(gib * GIB, 12_386_304, 75, 256) for gib in (20, 21, 64, 70, 200)] == [0, 1, 3, 3, 3]
    # Layers of 1 GiB: ten fit into 10 GiB, and nine into ten thousand million bytes.
    assert auto_whole_layers(200 * GIB, GIB // 256, 75, 256) == 10
    assert [VERSIONS[name].auto_full_layers for name in "AB"] == [True, False]


@pytest.mark.rule("XC-EVICT-194")
def test_the_size_of_most_layers_is_the_size_of_the_cache() -> None:
    assert common_size([9, 5, 5, 7]) == 5
    assert common_size([9, 5, 5, 9]) == 9
    assert common_size([5, 9, 9, 5]) == 5
