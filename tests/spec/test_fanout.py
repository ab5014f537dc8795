"""Fan-out: the published chunk plans, the laws over all sizes, and what the published sweeps say about more chunks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expertcache_spec.errors import InvalidModel
from expertcache_spec.fanout import (
    MOST_CHUNKS,
    PAGES,
    SWEEPS,
    Chunk,
    ReadTime,
    chunk_count,
    chunk_plan,
    fit,
    is_whole,
)

PAGE = 16384
PUBLISHED = [
    (432 * PAGE, 4, [108] * 4),
    (432 * PAGE, 5, [87, 87, 86, 86, 86]),
    (432 * PAGE, 8, [54] * 8),
    (240 * PAGE, 7, [35, 35, 34, 34, 34, 34, 34]),
    (332 * PAGE, 8, [42, 42, 42, 42, 41, 41, 41, 41]),
    (PAGE, 8, [1]),
]
"""Record bytes, chunks asked for, pages of each chunk."""


@pytest.mark.rule("XC-FANOUT-001", "XC-FANOUT-002", "XC-FANOUT-003")
@pytest.mark.parametrize(("size", "wanted", "pages"), PUBLISHED)
def test_the_published_plans_come_out(size: int, wanted: int, pages: list[int]) -> None:
    plan = chunk_plan(size, wanted, PAGE)
    assert [chunk.length for chunk in plan] == [PAGE * count for count in pages]
    assert [chunk.offset for chunk in plan] == [PAGE * sum(pages[:place]) for place in range(len(pages))]


@pytest.mark.rule("XC-FANOUT-002")
@pytest.mark.parametrize(("wanted", "count"), [(-3, 1), (0, 1), (1, 1), (8, 8), (9, 8), (16, 8)])
def test_the_count_is_clamped_to_one_to_eight(wanted: int, count: int) -> None:
    assert len(chunk_plan(432 * PAGE, wanted, PAGE)) == count


@pytest.mark.rule("XC-FANOUT-002")
def test_a_size_that_is_no_multiple_of_the_page_is_read_in_one() -> None:
    assert chunk_plan(16385, 8, PAGE) == (Chunk(0, 16385),)
    assert chunk_plan(0, 8, PAGE) == (Chunk(0, 0),)


def obeys_the_laws(size: int, wanted: int, page: int) -> None:
    """Check one plan against every law, each stated anew."""
    plan = chunk_plan(size, wanted, page)
    covered = [position for offset, length in plan for position in (offset, offset + length)]
    assert covered[0] == 0
    assert covered[-1] == size
    assert covered[1:-1:2] == covered[2::2]  # each begins where the one before ends
    assert all(chunk.length > 0 for chunk in plan) or (size == 0 and plan == (Chunk(0, 0),))
    assert len(plan) == chunk_count(size, wanted, page)
    assert 1 <= len(plan) <= max(1, min(wanted, MOST_CHUNKS))
    if len(plan) > 1:
        lengths = [chunk.length for chunk in plan]
        assert all(length % page == 0 for length in lengths)
        assert lengths == sorted(lengths, reverse=True)
        assert lengths[0] - lengths[-1] <= page
        assert len(plan) == min(wanted, MOST_CHUNKS, size // page)


@pytest.mark.rule("XC-FANOUT-001", "XC-FANOUT-002", "XC-FANOUT-003")
def test_every_small_record_obeys_the_laws_under_every_count_and_small_page() -> None:
    for page in (1, 2, 3, 4):
        for size in range(24 * page + 1):
            for wanted in range(-1, 11):
                obeys_the_laws(size, wanted, page)


@pytest.mark.rule("XC-FANOUT-001", "XC-FANOUT-002", "XC-FANOUT-003")
@given(st.integers(0, 2**20), st.integers(0, 3), st.integers(-(2**40), 2**40), st.sampled_from(PAGES))
def test_every_record_obeys_the_laws_on_every_page(pages: int, odd: int, wanted: int, page: int) -> None:
    obeys_the_laws(pages * page + odd, wanted, page)


@pytest.mark.rule("XC-FANOUT-003")
@pytest.mark.parametrize("page", PAGES)
def test_a_real_record_is_split_where_the_page_divides_it(page: int) -> None:
    """The 4-bit record is 432 pages of 16 KiB: 108 of 64 KiB, 1,728 of 4 KiB. The Q3 record is 83 of 64 KiB."""
    assert {len(chunk_plan(size, 4, page)) for size in (7_077_888, 5_439_488, 3_932_160)} == {4}
    assert len(chunk_plan(9_953_280, 4, page)) == (4 if page == 4096 else 1)  # 607.5 pages of 16 KiB


@pytest.mark.rule("XC-FANOUT-004")
def test_a_count_from_another_records_size_would_drop_the_tail_of_a_smaller_one() -> None:
    uniform, own = 432 * PAGE, 6 * PAGE
    count = chunk_count(uniform, 8, PAGE)
    assert [own // PAGE // count * PAGE] * count == [0] * 8  # what the tiered engine read: nothing
    assert [chunk.length for chunk in chunk_plan(own, 8, PAGE)] == [PAGE] * 6


@pytest.mark.rule("XC-FANOUT-005")
def test_a_record_is_whole_only_when_chunks_and_sum_agree() -> None:
    size = 432 * PAGE
    plan = chunk_plan(size, 4, PAGE)
    lengths = [chunk.length for chunk in plan]
    assert is_whole(plan, size, lengths)
    assert not is_whole(plan[:-1], size, lengths[:-1])  # equal lengths, the tail dropped
    assert not is_whole(plan, size, [lengths[0] + 1, lengths[1] - 1, *lengths[2:]])  # equal sum
    assert not is_whole(plan, size, lengths[:-1])
    assert is_whole(chunk_plan(0, 4, PAGE), 0, [0])


@pytest.mark.rule("XC-FANOUT-002")
@pytest.mark.parametrize(("size", "wanted", "page"), [(-1, 1, 1), (1.5, 1, 1), (1, 1, 0), (1, 2.0, 1), (True, 1, 1)])
def test_what_is_no_size_is_refused(size: int, wanted: int, page: int) -> None:
    with pytest.raises(InvalidModel, match="chunk plan"):
        chunk_plan(size, wanted, page)


# ---------------------------------------------------------------------------------------------- when more chunks help


@given(st.floats(0, 100), st.floats(0, 100), st.floats(0.001, 10), st.integers(1, 8))
def test_chunks_help_up_to_the_best_count_and_not_beyond(
    rest: float, service: float, request: float, lanes: int
) -> None:
    time = ReadTime(rest, service, request, lanes)
    best = time.best()
    assert all(time.helps(count) for count in range(1, best))
    assert not any(time.helps(count) for count in range(best, MOST_CHUNKS))


def test_of_no_chunks_none_is_best() -> None:
    for most in (0, -1):
        with pytest.raises(InvalidModel, match="read time"):
            ReadTime(70, 12, 1).best(most)


def test_without_a_cost_of_a_request_chunks_help_up_to_the_lanes() -> None:
    assert [ReadTime(70, 12, 0, lanes).best() for lanes in (1, 2, 4, 8)] == [1, 2, 4, 8]


def test_the_fit_finds_the_times_that_made_a_sweep() -> None:
    made = ReadTime(70.0, 12.0, 0.5, 4)
    found = fit({chunks: 1000 / made.of(chunks) for chunks in (1, 2, 4, 8)}, lanes=4)
    assert (found.time.rest, found.time.service, found.time.request) == pytest.approx((70, 12, 0.5))
    assert found.worst < 1e-9


@pytest.mark.parametrize(
    ("name", "published", "fitted"),
    [
        ("pool", [11.71, 12.46, 12.52, 12.02], [11.71, 12.44, 12.54, 12.02]),
        ("dispatch", [11.04, 12.07, 13.33, 12.04], [10.95, 12.47, 12.88, 12.15]),
    ],
)
def test_the_published_sweeps_and_the_speeds_that_are_fitted_to_them(
    name: str, published: list[float], fitted: list[float]
) -> None:
    assert SWEEPS[name] == dict(zip((1, 2, 4, 8), published, strict=True))
    time = fit(SWEEPS[name]).time
    assert [round(1000 / time.of(chunks), 2) for chunks in SWEEPS[name]] == fitted


def test_the_pool_sweep_is_explained_to_a_ninth_of_a_millisecond() -> None:
    found = fit(SWEEPS["pool"])
    time = found.time
    assert (time.rest, time.service, time.request) == pytest.approx((71.602, 12.505, 1.258), abs=5e-4)
    assert found.residuals == pytest.approx({1: 0.032, 2: -0.113, 4: 0.113, 8: -0.032}, abs=5e-4)
    assert (time.best(), round(1000 / time.of(4), 2)) == (3, 12.54)


def test_three_lanes_explain_the_pool_sweep_nearly_six_times_better_and_put_the_best_count_where_eight_do() -> None:
    """Four points and, the lanes counted, four numbers: no evidence for three lanes."""
    worst = {lanes: fit(SWEEPS["pool"], lanes).worst for lanes in range(2, 9)}
    assert worst == pytest.approx({2: 0.877, 3: 0.019, 4: 0.311, 5: 0.235, 6: 0.182, 7: 0.143, 8: 0.113}, abs=5e-4)
    assert round(worst[8] / worst[3], 1) == 5.8
    time = fit(SWEEPS["pool"], 3).time
    assert (round(time.service, 1), round(time.request, 2), time.best()) == (12.0, 0.82, 3)


def test_the_dispatch_sweep_is_not_explained() -> None:
    """Its peak is 2.6 ms sharper than any cost linear in the requests allows, under every number of lanes."""
    found = fit(SWEEPS["dispatch"])
    assert found.residuals == pytest.approx({1: -0.750, 2: 2.626, 4: -2.626, 8: 0.750}, abs=5e-4)
    assert round(1000 / found.time.of(4), 2) == 12.88
    assert min(fit(SWEEPS["dispatch"], lanes).worst for lanes in range(2, 9)) == pytest.approx(2.311, abs=5e-4)
    assert fit(SWEEPS["dispatch"], 2).time.best() == 2 != max(SWEEPS["dispatch"], key=SWEEPS["dispatch"].__getitem__)


def test_four_records_on_eight_workers_predict_two_chunks_and_a_flat_top_was_measured() -> None:
    """With two lanes the model must put the best count at 2; the pool measured 4 ahead by 0.4 ms a token."""
    found = fit(SWEEPS["pool"], lanes=2)
    assert found.time.best() == 2
    assert found.residuals == pytest.approx({1: 0, 2: 0.585, 4: -0.877, 8: 0.292}, abs=5e-4)
    assert 1000 / SWEEPS["pool"][2] - 1000 / SWEEPS["pool"][4] == pytest.approx(0.385, abs=5e-4)


@pytest.mark.parametrize("sweep", [{1: 10.0, 2: 11.0}, {1: 10.0, 2: 0.0, 4: 9.0}, {}])
def test_a_sweep_that_determines_nothing_is_refused(sweep: dict[int, float]) -> None:
    with pytest.raises(InvalidModel, match="fit"):
        fit(sweep)
