"""The page cache: whole pages, two kinds of bytes, and where memory is best spent."""

from __future__ import annotations

import gzip
import re
from collections.abc import Sequence
from functools import cache
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expertcache_spec.errors import InvalidBudget
from expertcache_spec.layout import Extent, Shape, packed_layers
from expertcache_spec.model import Budget
from expertcache_spec.pagecache import (
    PageCache,
    Share,
    TierCost,
    Traffic,
    best,
    has_interior_optimum,
    sizing_curve,
    temperature,
    traffic,
)
from expertcache_spec.residency import Settings
from expertcache_spec.trace import Trace, decode_trace

from .recordings import DATA, beginning, bigmoe, replayed

extents = st.tuples(st.sampled_from("ab"), st.integers(0, 90), st.integers(0, 30)).map(lambda found: Extent(*found))
COST = TierCost(copy=20e9, device=3e9)


def by_hand(reads: Sequence[Extent], pages: int, page: int) -> list[int]:
    """The pages that each read takes from the device, from a list kept in order of use."""
    held: list[tuple[str, int]] = []
    found = []
    for extent in reads:
        missing = 0
        for place in dict.fromkeys((extent.file, byte // page) for byte in range(extent.offset, extent.end)):
            if place in held:
                held.remove(place)
            else:
                missing += 1
            held = [*held, place][-pages:] if pages else []
        found.append(missing * page)
    return found


@pytest.mark.rule("XC-PAGE-001", "XC-PAGE-002")
@given(st.lists(extents, max_size=30), st.integers(0, 12), st.sampled_from([1, 4, 16]))
def test_the_cache_is_an_lru_over_whole_pages(reads: list[Extent], pages: int, page: int) -> None:
    cache = PageCache(pages, page)
    assert [cache.read(extent) for extent in reads] == by_hand(reads, pages, page)
    assert cache.application == sum(extent.length for extent in reads)
    assert len(cache.held) <= pages


@pytest.mark.rule("XC-PAGE-002", "XC-PAGE-006")
@given(st.lists(extents, max_size=30), st.integers(0, 12))
def test_one_page_more_never_takes_more_from_the_device(reads: list[Extent], pages: int) -> None:
    small, large = PageCache(pages, 4), PageCache(pages + 1, 4)
    for extent in reads:
        assert large.read(extent) <= small.read(extent)
    assert small.application == large.application


@pytest.mark.rule("XC-PAGE-002")
def test_a_read_takes_the_whole_pages_that_it_touches() -> None:
    cache = PageCache(8, 16384)
    assert cache.read(Extent("f", 16383, 2)) == 2 * 16384
    assert cache.read(Extent("f", 0, 100)) == 0
    assert cache.read(Extent("f", 40000, 0)) == 0
    assert (cache.application, cache.physical) == (102, 32768)


@pytest.mark.rule("XC-PAGE-004")
def test_a_read_past_the_cache_leaves_it_as_it_is_and_is_served_by_it() -> None:
    cache = PageCache(2, 10)
    cache.read(Extent("f", 0, 20))
    before = list(cache.held)
    assert cache.read(Extent("f", 0, 10), keep=False) == 0
    assert cache.read(Extent("f", 50, 30), keep=False) == 30
    assert list(cache.held) == before
    assert (cache.application, cache.physical) == (60, 50)


@pytest.mark.rule("XC-PAGE-005")
def test_advice_moves_pages_and_counts_nothing_for_the_application() -> None:
    cache = PageCache(4, 10)
    assert cache.advise(Extent("f", 0, 30)) == 30
    assert (cache.application, cache.physical) == (0, 30)
    assert cache.read(Extent("f", 0, 30)) == 0
    assert (cache.application, cache.physical) == (30, 30)


@pytest.mark.rule("XC-PAGE-003")
@pytest.mark.parametrize(
    ("application", "physical", "resident", "said"),
    [
        (100, 100, 0, "cold"),
        (100, 128, 0, "cold"),
        (100, 128, None, "unknown"),
        (100, 128, 1, "mixed"),
        (100, 99, 0, "mixed"),
        (100, 99, None, "mixed"),
        (100, 0, 0, "warm"),
        (100, 0, None, "warm"),
        (100, None, 0, "unknown"),
        (0, 0, 0, "unknown"),
        (0, 5, 0, "unknown"),
    ],
)
def test_cold_is_said_only_with_evidence(
    application: int, physical: int | None, resident: int | None, said: str
) -> None:
    assert temperature(application, physical, resident) == said


@pytest.mark.rule("XC-PAGE-003")
def test_reads_that_memory_served_are_not_cold_for_the_page_that_the_first_one_took() -> None:
    cache, byte = PageCache(1, 4096), Extent("f", 0, 1)
    assert [cache.read(byte) for _ in range(3)] == [4096, 0, 0]
    assert cache.physical > cache.application
    assert temperature(cache.application, cache.physical) == "unknown"
    assert temperature(cache.application, cache.physical, resident=2) == "mixed"


@pytest.mark.rule("XC-PAGE-003")
def test_the_reported_reads_were_faster_than_any_device() -> None:
    assert pytest.approx(94.67, abs=0.005) == 10_213 * 9_953_280 / 2**30
    assert round(94.67 / 4.97) == 19  # GiB/s


@pytest.mark.parametrize(("pages", "page"), [(-1, 4096), (1, 0), (1.5, 4096)])
def test_what_is_no_capacity_is_refused(pages: int, page: int) -> None:
    with pytest.raises(InvalidBudget, match="page cache"):
        PageCache(pages, page)


# ---------------------------------------------------------------------------------------------- two tiers


@pytest.mark.rule("XC-PAGE-006")
def test_the_expert_cache_does_the_same_over_any_page_cache() -> None:
    trace = decode_trace([[0, 1], [2, 3], [0, 1], [0, 4]], record_bytes=40)
    place = packed_layers(Shape(5, {0: {"all": 40}})).place
    steps = list(replayed(trace, "lru", Budget(slots=2)))
    found = [traffic(steps, place, PageCache(pages, 40)) for pages in range(7)]
    assert {each.application for each in found} == {7 * 40}
    assert [each.physical // 40 for each in found] == [7, 7, 7, 7, 5, 5, 5]
    asked = [key.expert for _, step in steps for key in step.misses]
    assert asked == [0, 1, 2, 3, 0, 1, 4]


@cache
def weights_of(name: str) -> list[int]:
    """Bytes of attention, norms and router by layer, as the recording's header gives them."""
    with gzip.open(DATA / "bigmoe-on-edge" / f"{name}.route.csv.gz", "rt") as file:
        return [int(found[1]) for line in file if (found := re.search(r"dense_bytes=(\d+)", line))]


def grid(total: int, count: int) -> list[int]:
    """So many shares of the total, from nothing to all."""
    return [total * n // (count - 1) for n in range(count)]


def curve(
    trace: Trace, total: int, weights: Sequence[int], shares: Sequence[int], page: int, *, keep: bool
) -> list[Share]:
    """Divisions of `total` bytes under an LRU over packed records and mapped weights of those sizes."""
    sizes = trace.geometry.record_bytes
    assert sizes is not None
    place = packed_layers(Shape(trace.geometry.experts, {n: {"all": size} for n, size in enumerate(sizes)})).place
    starts = [0, *accumulate(weights)]

    def mapped(layer: int) -> tuple[Extent, ...]:
        return (Extent("weights", starts[layer], weights[layer]),) if weights[layer] else ()

    def run(share: int, below: PageCache) -> Traffic:
        served = replayed(trace, "lru", Budget(bytes=share), Settings(overflow="bypass"))
        return traffic(served, place, below, mapped, keep=keep)

    return sizing_curve(total, shares, page, COST, run)


@pytest.mark.rule("XC-PAGE-006")
def test_records_past_the_cache_and_mapped_weights_give_an_interior_optimum_on_a_real_trace() -> None:
    """More experts miss less until the pages no longer hold the weights; then every token reads those again."""
    trace = beginning(bigmoe("qwen"), 12)
    found = curve(trace, 3 * 10**9, weights_of("qwen"), grid(3 * 10**9, 5), 1 << 18, keep=False)
    application = [share.traffic.application for share in found]
    assert application == sorted(application, reverse=True)
    assert application[-1] < application[0]
    assert has_interior_optimum(found)
    assert best(found).experts == 2_250_000_000
    fits = [share for share in found if share.pages >= sum(weights_of("qwen"))]
    assert best(found) == fits[-1]
    assert fits[-1].traffic.mapped_physical < found[-1].traffic.mapped_physical / 5


@pytest.mark.rule("XC-PAGE-001")
def test_without_mapped_weights_there_is_none_and_all_of_the_memory_belongs_to_one_tier() -> None:
    trace = beginning(bigmoe("qwen"), 12)
    for keep in (True, False):
        found = curve(trace, 3 * 10**9, [0] * 48, grid(3 * 10**9, 5), 1 << 18, keep=keep)
        assert not has_interior_optimum(found)
        assert best(found).experts == 3 * 10**9
    # The same LRU in either tier reads about the same from the device; between the ends both hold the same bytes.
    through = curve(trace, 3 * 10**9, [0] * 48, grid(3 * 10**9, 5), 1 << 18, keep=True)
    assert max(share.traffic.physical for share in through[1:-1]) > max(
        s.traffic.physical for s in (through[0], through[-1])
    )


PUBLISHED = {
    0: (112947, 114821, 567, 44.11),
    1125: (73469, 74708, 567, 28.77),
    1875: (57453, 58427, 567, 22.54),
    2250: (51405, 52278, 567, 20.19),
    2400: (47514, 48321, 567, 18.67),
    2432: (47004, 47803, 567, 18.47),
    2433: (46995, 47794, 73179, 42.67),
    2625: (44609, 45366, 73179, 41.75),
    3000: (40298, 40982, 73576, 40.20),
}
"""The chapter's table: experts in MB; record bytes asked for and read, weights read in MB; seconds."""


@pytest.mark.nightly
@pytest.mark.rule("XC-PAGE-006")
@pytest.mark.parametrize("weights", [weights_of("qwen"), [sum(weights_of("qwen")) // 48] * 48], ids=["own", "even"])
def test_the_table_of_the_chapter_comes_out(weights: list[int]) -> None:
    """Whether each layer has the weights that the recording's header gives it, or all have the same."""
    shares = [megabytes * 10**6 for megabytes in PUBLISHED]
    found = curve(bigmoe("qwen"), 3 * 10**9, weights, shares, 1 << 16, keep=False)
    rows = {}
    for share in found:
        moved = share.traffic
        megabytes = [count // 10**6 for count in (moved.application, moved.physical, moved.mapped_physical)]
        rows[share.experts // 10**6] = (*megabytes, round(share.seconds, 2))
    assert rows == PUBLISHED
    assert best(found).experts == 2432 * 10**6


EVEN = [567_263_232 // 48] * 48
"""The weights of the chapter's example, spread evenly over the layers."""


@pytest.mark.rule("XC-PAGE-006")
def test_records_through_the_page_cache_take_the_times_that_the_chapter_says() -> None:
    shares = [megabytes * 10**6 for megabytes in (0, 1875, 2432)]
    found = curve(bigmoe("qwen"), 3 * 10**9, EVEN, shares, 1 << 16, keep=True)
    assert [round(share.seconds, 2) for share in found] == [22.05, 25.08, 42.66]


@pytest.mark.nightly
@pytest.mark.rule("XC-PAGE-006")
def test_none_of_23_divisions_beats_the_end_without_experts_where_records_go_through_the_page_cache() -> None:
    found = curve(bigmoe("qwen"), 3 * 10**9, EVEN, grid(3 * 10**9, 24), 1 << 16, keep=True)
    assert len(found[1:]) == 23
    assert best(found).experts == 0
    assert min(share.seconds for share in found[1:]) > found[0].seconds


@pytest.mark.parametrize(
    ("share", "page", "said"), [(11, 1, "share"), (-1, 1, "share"), (5, 0, "pages of 0"), (5, -5, "pages of -5")]
)
def test_a_share_beyond_the_total_or_no_page_is_refused(share: int, page: int, said: str) -> None:
    with pytest.raises(InvalidBudget, match=said):
        sizing_curve(10, [share], page, COST, lambda share, below: Traffic(0, 0, 0, 0))


def test_of_no_shares_none_is_best() -> None:
    for judged in (best, has_interior_optimum):
        with pytest.raises(InvalidBudget, match="no share"):
            judged([])
