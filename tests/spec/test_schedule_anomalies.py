"""Where the order of the disciplines ends: the smallest counterexample outside of each condition, found by search.

Every search walks all scenarios of a family by size and takes the first that breaks the inequality; the size is the
number of slots and misses, then the sum of all numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import attrs
import pytest

from expertcache_spec.schedule import Scenario, divided, load_of, schedule
from expertcache_spec.schedule.work import Load

from .schedules import scenario, under

Numbers = tuple[int, int, int, int]
"""Gate and up bytes, down bytes, gate_up, down."""


def makespan(case: Scenario, name: str = "sync", reads: str = "record") -> int:
    return schedule(under(case, name, reads=reads)).makespan


def size(case: Scenario) -> tuple[int, int]:
    """What the search grows."""
    numbers = [*attrs.astuple(case.costs), *(request.bytes for request in case.records[0]), case.storage.workers]
    return sum(len(load.keys) + len(load.missing) for load in case.loads), sum(numbers)


def smallest(family: Iterator[Scenario], bad: Callable[[Scenario], bool]) -> Scenario | None:
    """The first of the smallest scenarios for which the inequality fails."""
    return next((case for case in sorted(family, key=size) if bad(case)), None)


def events(slots: int) -> Iterator[Load]:
    """Every event of up to that many slots, up to the order of its slots."""
    return (load_of(width, range(missing)) for width in range(1, slots + 1) for missing in range(width + 1))


def numbers(most: int = 2) -> Iterator[Numbers]:
    return (
        (*sizes, *costs) for sizes in product(range(1, most + 1), repeat=2) for costs in product(range(3), repeat=2)
    )


def one_event(slots: int = 2, most: int = 2, workers: int = 1, lanes: int = 1, **costs: int) -> Iterator[Scenario]:
    """One event, one queue."""
    for load, (first, second, gate_up, down) in product(events(slots), numbers(most)):
        yield scenario(
            [load], divided([first], [second]), workers=workers, lanes=lanes, gate_up=gate_up, down=down, **costs
        )


def two_streams() -> Iterator[Scenario]:
    """Two events of two streams, selected one after the other, on one queue and one worker."""
    for first, second, (gate_bytes, down_bytes, gate_up, down), route in product(
        events(2), events(2), numbers(), (0, 1)
    ):
        other = load_of(len(second.keys), second.absent, layer=1, stream=1)
        yield scenario([first, other], divided([gate_bytes], [down_bytes]), gate_up=gate_up, down=down, route=route)


def shape(case: Scenario | None) -> object:
    """What to compare: slots and misses of each event, bytes, and the costs that are not 0."""
    assert case is not None
    costs = {name: value for name, value in attrs.asdict(case.costs).items() if value}
    return [(len(x.keys), len(x.missing)) for x in case.loads], [r.bytes for r in case.records[0]], costs


@pytest.mark.rule("XC-SCHED-020")
def test_with_a_dispatch_split_and_pipelined_can_be_slower_than_sync() -> None:
    found = smallest(one_event(dispatch=3), lambda case: makespan(case, "split") > makespan(case))
    assert shape(found) == ([(2, 1)], [1, 1], {"dispatch": 3})
    found = smallest(one_event(dispatch=3), lambda case: makespan(case, "pipelined") > makespan(case, "split"))
    assert shape(found) == ([(2, 2)], [1, 1], {"dispatch": 3})


@pytest.mark.rule("XC-SCHED-020")
def test_with_a_handoff_split_can_be_slower_than_sync() -> None:
    found = smallest(one_event(handoff=1), lambda case: makespan(case, "split") > makespan(case))
    assert shape(found) == ([(2, 1)], [1, 1], {"handoff": 1})


@pytest.mark.rule("XC-SCHED-020")
def test_with_two_streams_split_can_be_slower_than_sync() -> None:
    # The residents' gate and up holds the queue when the other stream wants to route: its read starts later.
    found = smallest(two_streams(), lambda case: makespan(case, "split") > makespan(case))
    assert found is not None
    assert shape(found) == ([(2, 1), (1, 1)], [1, 1], {"route": 1, "gate_up": 2})
    assert (makespan(found), makespan(found, "split")) == (9, 10)


@pytest.mark.rule("XC-SCHED-020")
def test_with_two_streams_pipelined_can_be_slower_than_split_and_sync() -> None:
    found = smallest(two_streams(), lambda case: makespan(case, "pipelined") > makespan(case, "split"))
    assert found is not None
    assert shape(found) == ([(2, 1), (1, 1)], [1, 1], {"gate_up": 1, "down": 1})
    assert [makespan(found, name) for name in ("sync", "split", "pipelined")] == [8, 7, 8]


@pytest.mark.rule("XC-SCHED-020")
def test_with_two_streams_a_hit_can_take_longer_than_the_miss_in_its_place() -> None:
    def bad(case: Scenario) -> bool:
        first = attrs.evolve(case.loads[0], missing=frozenset())
        return bool(case.loads[0].missing) and makespan(attrs.evolve(case, loads=(first, case.loads[1]))) > makespan(
            case
        )

    assert shape(smallest(two_streams(), bad)) == ([(1, 1), (1, 1)], [1, 1], {"route": 1, "down": 2})


@pytest.mark.rule("XC-SCHED-020")
def test_with_two_streams_shorter_reads_can_take_longer() -> None:
    # Graham's anomaly: less work, the same rules, a later end.
    def bad(case: Scenario) -> bool:
        first, second = (request.bytes for request in case.records[0])
        shorter = attrs.evolve(case, records=(divided([first], [second - 1]),))
        return makespan(shorter, "split") > makespan(case, "split")

    found = smallest(two_streams(), bad)
    assert found is not None
    assert shape(found) == ([(2, 1), (1, 1)], [1, 2], {"route": 1, "gate_up": 2})


@pytest.mark.rule("XC-SCHED-003", "XC-SCHED-020")
def test_on_shared_bandwidth_a_second_worker_can_make_pipelining_slower() -> None:
    def bad(case: Scenario) -> bool:
        return makespan(attrs.evolve(case, storage=attrs.evolve(case.storage, workers=2)), "pipelined") > makespan(
            case, "pipelined"
        )

    found = smallest(one_event(), bad)
    assert found is not None
    assert shape(found) == ([(2, 2)], [1, 2], {"gate_up": 1, "down": 2})
    alone = lambda case: bad(attrs.evolve(case, storage=attrs.evolve(case.storage, lanes=2)))  # noqa: E731
    assert smallest(one_event(), alone) is None  # with a lane of its own it never does


@pytest.mark.rule("XC-SCHED-012", "XC-SCHED-013")
def test_staged_and_pipelined_each_can_be_faster() -> None:
    staged = smallest(one_event(), lambda case: makespan(case, "staged", "stage") < makespan(case, "pipelined"))
    assert shape(staged) == ([(1, 1)], [1, 1], {"gate_up": 1})
    pipelined = smallest(one_event(), lambda case: makespan(case, "pipelined") < makespan(case, "staged", "stage"))
    assert shape(pipelined) == ([(2, 1)], [1, 1], {"down": 1})


@pytest.mark.rule("XC-SCHED-020")
def test_another_order_of_requests_can_make_staged_slower_than_split() -> None:
    def family() -> Iterator[Scenario]:
        for load, first, second, down in product(events(2), (1, 2), (1, 2), (1, 2)):
            yield scenario([load], divided([first, second], [down]), workers=2, lanes=2)

    found = smallest(family(), lambda case: makespan(case, "staged", "stage") > makespan(case, "split"))
    assert found is not None
    assert shape(found) == ([(2, 2)], [1, 2, 2], {})
    assert (makespan(found, "split"), makespan(found, "staged", "stage")) == (10, 12)


@pytest.mark.rule("XC-SCHED-020")
def test_where_everything_is_missing_pipelining_still_gains() -> None:
    found = smallest(
        one_event(), lambda case: not case.loads[0].present and makespan(case, "pipelined") < makespan(case)
    )
    assert shape(found) == ([(2, 2)], [1, 1], {"down": 1})
