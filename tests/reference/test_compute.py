"""Experts are computed on the bytes of their records, and their sum is the same bits whatever the order of arrival."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest

from expertcache_reference import compute
from expertcache_reference.compute.serving import All
from expertcache_spec.errors import InvalidModel, InvalidTrace, UnknownName
from expertcache_spec.model import Key
from expertcache_spec.trace import Event

WIDTH, HIDDEN, EXPERTS = 24, 10, 6


class Shuffled(NamedTuple):
    """Serves an event with its keys in any order and any groups, each record at any address."""

    event: Event
    records: dict[Key, bytes]
    chance: Random

    def batches(self) -> Iterator[All]:
        left = self.chance.sample(self.event.keys, len(self.event.keys))
        while left:
            count = self.chance.randint(1, len(left))
            yield All(tuple(left[:count]))
            del left[:count]

    def record(self, key: Key) -> memoryview:
        shift = self.chance.randrange(65)
        return memoryview(bytes(shift) + self.records[key])[shift:]


def records(seed: int) -> dict[Key, bytes]:
    random = np.random.default_rng(seed)
    return {Key(0, expert): random.normal(size=3 * WIDTH * HIDDEN).astype("<f2").tobytes() for expert in range(EXPERTS)}


def asked(chance: Random, rows: int) -> Event:
    """An event whose rows ask for one expert or more, with weights."""
    chosen = tuple(tuple(chance.sample(range(EXPERTS), chance.randint(1, 4))) for _ in range(rows))
    return Event(0, chosen, weights=tuple(tuple(chance.random() for _ in row) for row in chosen))


def inputs(seed: int, rows: int) -> Any:
    return np.random.default_rng(seed).normal(size=(rows, WIDTH)).astype(np.float32)


def in_doubles(record: bytes, x: Any) -> Any:
    """One expert on one row, from its definition, in float64."""
    gate, up, down = np.frombuffer(record, "<f2").astype(np.float64).reshape(3, -1)
    h = gate.reshape(HIDDEN, WIDTH) @ x
    return down.reshape(WIDTH, HIDDEN) @ (h / (1 + np.exp(-h)) * (up.reshape(HIDDEN, WIDTH) @ x))


def backends() -> list[Any]:
    missing = pytest.mark.skipif(not has_mlx(), reason="mlx is not installed: pip install 'expertcache[mlx]'")
    return ["numpy", pytest.param("mlx", marks=missing)]


def has_mlx() -> bool:
    try:
        compute.backend("mlx", WIDTH, HIDDEN)
    except compute.MissingBackend:
        return False
    return True


@pytest.mark.parametrize("name", backends())
def test_the_weighted_sum_is_that_of_the_definition(name: str) -> None:
    chance, computes = Random(name), compute.backend(name, WIDTH, HIDDEN)
    for round_ in range(20):
        event, known, x = asked(chance, 5), records(round_), inputs(round_, 5)
        found = compute.mixture(event, x, compute.Resident(known).serve, computes)
        assert event.weights is not None
        for row, chosen in enumerate(event.rows):
            terms = [
                weight * in_doubles(known[Key(0, expert)], x[row])
                for expert, weight in zip(chosen, event.weights[row], strict=True)
            ]
            assert np.allclose(found[row], sum(terms), rtol=0, atol=1e-5 * np.abs(terms).max())


@pytest.mark.rule("XC-SCHED-009")
@pytest.mark.parametrize("name", backends())
def test_the_sum_has_the_same_bits_in_whatever_order_groups_and_places_the_bytes_come(name: str) -> None:
    chance, computes = Random(f"order {name}"), compute.backend(name, WIDTH, HIDDEN)
    for round_ in range(30):
        event, known, x = asked(chance, 1 + round_ % 7), records(round_), inputs(round_, 1 + round_ % 7)

        def shuffled(event: Event, known: dict[Key, bytes] = known) -> AbstractContextManager[Shuffled]:
            return nullcontext(Shuffled(event, known, chance))

        plain = compute.mixture(event, x, compute.Resident(known).serve, computes)
        for _ in range(5):
            assert compute.mixture(event, x, shuffled, computes).tobytes() == plain.tobytes()


@pytest.mark.rule("XC-SCHED-009")
def test_the_sum_adds_in_slot_order_and_no_other() -> None:
    # 1e8 + 1 - 1e8 is 0 in float32, 1e8 - 1e8 + 1 is 1: only the order of the row decides.
    outputs = {Key(0, e): np.full((1, 1), value, np.float32) for e, value in enumerate((1e8, 1.0, -1e8))}
    for row, total in (((0, 1, 2), 0.0), ((0, 2, 1), 1.0), ((2, 0, 1), 1.0), ((1, 0, 2), 0.0)):
        event = Event(0, (row,), weights=((1.0, 1.0, 1.0),))
        for keys in (event.keys, event.keys[::-1]):
            arrived = {key: outputs[key] for key in keys}
            assert compute.combine(event, compute.rows_of(event), arrived, 1)[0, 0] == total


def test_the_parts_of_a_record_are_views_of_its_bytes() -> None:
    memory = bytearray(6 * WIDTH * HIDDEN)
    parts = compute.parts(memoryview(memory), WIDTH, HIDDEN)
    assert [part.shape for part in parts] == [(HIDDEN, WIDTH), (HIDDEN, WIDTH), (WIDTH, HIDDEN)]
    memory[2 * WIDTH * HIDDEN : 2 * WIDTH * HIDDEN + 2] = np.float16(1.5).tobytes()
    assert parts.up[0, 0] == 1.5
    assert not any(part.flags.owndata for part in parts)


def test_no_view_of_a_record_outlives_its_computation() -> None:
    view = memoryview(bytearray(records(0)[Key(0, 0)])).toreadonly()
    compute.backend("numpy", WIDTH, HIDDEN).expert(view, inputs(0, 2))
    view.release()  # raises BufferError while an array of it lives


def test_a_gate_far_below_zero_gives_zero_without_a_warning() -> None:
    ones = np.ones(3 * WIDTH * HIDDEN, "<f2")
    output = compute.backend("numpy", WIDTH, HIDDEN).expert(
        memoryview(ones.tobytes()), np.full((1, WIDTH), -100, np.float32)
    )
    assert not output.any()


def test_wrong_records_events_and_names_are_refused() -> None:
    computes = compute.backend("numpy", WIDTH, HIDDEN)
    with pytest.raises(InvalidModel, match="a record of 10 bytes"):
        computes.expert(memoryview(bytes(10)), inputs(0, 1))
    with pytest.raises(InvalidTrace, match="without weights"):
        compute.mixture(Event(0, ((0,),)), inputs(0, 1), compute.Resident(records(0)).serve, computes)
    with pytest.raises(UnknownName, match="one of numpy, mlx"):
        compute.backend("cuda", WIDTH, HIDDEN)


@pytest.mark.skipif(has_mlx(), reason="mlx is installed")
def test_a_backend_that_is_not_installed_says_how_to_get_it() -> None:
    with pytest.raises(compute.MissingBackend, match=r"expertcache\[mlx\]"):
        compute.backend("mlx", WIDTH, HIDDEN)


@pytest.mark.skipif(not has_mlx(), reason="mlx is not installed: pip install 'expertcache[mlx]'")
def test_mlx_lies_within_its_tolerance_of_numpy() -> None:
    from expertcache_reference.compute.on_mlx import TOLERANCE

    worst = 0.0
    for seed in range(200):
        known, x = records(seed)[Key(0, seed % EXPERTS)], inputs(seed, 1 + seed % 9)
        one, other = (compute.backend(name, WIDTH, HIDDEN).expert(memoryview(known), x) for name in compute.BACKENDS)
        worst = max(worst, float((np.abs(one - other).max(1) / np.abs(one).max(1)).max()))
    assert worst <= TOLERANCE == 1e-5
    print(f"largest difference: {worst:.2e} of the largest output of its row")
