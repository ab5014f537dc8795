"""The arena: memory for records within the budget, and no slot in two hands."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expertcache_reference.slots import Arena, Slot
from expertcache_reference.system.simulated import SimulatedMachine, Simulation, simulated
from expertcache_spec.errors import StillInUse, WrongState


@pytest.fixture
def machine() -> Iterator[SimulatedMachine]:
    with simulated(Simulation(page=4096)) as found:
        yield found


def _address(slot: Slot) -> int:
    import numpy

    return int(numpy.frombuffer(slot.view, numpy.uint8).ctypes.data)


@pytest.mark.parametrize("page", [4096, 16384, 65536])
def test_slots_of_one_size_are_one_block_and_each_begins_on_a_page(page: int) -> None:
    with simulated(Simulation(page=page)) as machine:
        arena = Arena(machine, 3 * 2 * page, page + 1, 3)
        slots = [arena.take(page + 1) for _ in range(3)]
        places = [_address(slot) for slot in slots]
        assert [place - places[0] for place in places] == [0, 2 * page, 4 * page]
        assert places[0] % page == 0
        assert arena.bytes == arena.peak == 6 * page
        assert len({slot.number for slot in slots}) == 3
        for slot in slots:
            arena.give(slot)


@pytest.mark.rule("XC-RES-009")
def test_a_slot_given_back_twice_is_an_error(machine: SimulatedMachine) -> None:
    arena = Arena(machine, 8192, 4096, 2)
    slot = arena.take(4096)
    arena.give(slot)
    with pytest.raises(WrongState, match="is free"):
        arena.give(slot)


@pytest.mark.rule("XC-RES-004")
def test_a_slot_that_a_lease_or_a_read_uses_is_not_given_back(machine: SimulatedMachine) -> None:
    arena = Arena(machine, 8192, 4096, 2)
    slot = arena.take(4096)
    slot.uses += 1
    with pytest.raises(StillInUse, match="1 leases and reads"):
        arena.give(slot)
    slot.uses -= 1
    arena.give(slot)


def test_a_leak_is_found_at_the_end(machine: SimulatedMachine) -> None:
    arena = Arena(machine, 8192, 4096, 2)
    slot = arena.take(1)
    with pytest.raises(WrongState, match="1 slots are out"):
        arena.close()
    arena.give(slot)
    arena.close()
    assert arena.bytes == 0


@pytest.mark.rule("XC-RES-010")
def test_where_sizes_differ_free_slots_of_one_size_make_room_for_another(machine: SimulatedMachine) -> None:
    arena = Arena(machine, 3 * 4096)
    small = [arena.take(10) for _ in range(3)]
    for slot in small:
        arena.give(slot)
    assert arena.bytes == 3 * 4096, "kept for the next record of that size"
    large = arena.take(8192)
    assert arena.bytes == arena.peak == 3 * 4096
    arena.give(large)


def test_an_overshoot_goes_back_to_the_machine(machine: SimulatedMachine) -> None:
    arena = Arena(machine, 4096, 4096, 1)
    one, two = arena.take(4096), arena.take(4096)
    assert arena.bytes == 8192, "the residency machine decides about the budget, as room trim does"
    arena.give(two)
    assert arena.bytes == 4096
    arena.give(one)


@pytest.mark.rule("XC-RES-011")
def test_a_smaller_limit_gives_free_memory_back_at_once_and_the_rest_as_it_comes_free(
    machine: SimulatedMachine,
) -> None:
    arena = Arena(machine, 4 * 4096)
    slots = [arena.take(4096) for _ in range(4)]
    arena.give(slots.pop())
    arena.resize(4096)
    assert arena.bytes == 3 * 4096
    for slot in slots:
        arena.give(slot)
    assert arena.bytes == 4096


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 3)), max_size=60), st.integers(0, 6))
def test_no_slot_is_in_two_hands_and_memory_within_the_limit(steps: list[tuple[bool, int]], limit: int) -> None:
    with simulated(Simulation(page=4096)) as machine:
        arena, out = Arena(machine, limit * 4096), list[Slot]()
        for take, size in steps:
            if take:
                slot = arena.take(size * 4096)
                assert slot not in out
                out.append(slot)
            elif out:
                arena.give(out.pop(size % len(out)))
            assert arena.used == len(out)
            assert arena.bytes >= sum(slot.size for slot in out)
            assert arena.bytes <= max(limit * 4096, sum(slot.size for slot in out))
        for slot in out:
            arena.give(slot)
        arena.close()
