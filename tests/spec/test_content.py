"""What an event may compute with, and the bytes of models that exist to be looked at."""

import random

import pytest

from expertcache_spec.content import computable, pattern
from expertcache_spec.errors import WrongState
from expertcache_spec.eviction import make
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.residency import Residency, Settings
from expertcache_spec.trace import Event

MODEL = Geometry(2, 6, 3, (8, 8))


def machine(slots: int = 4, **settings: str) -> Residency:
    return Residency(MODEL, Budget(slots=slots), make("lru"), Settings(**settings))  # type: ignore[arg-type]


@pytest.mark.rule("XC-BYTES-001", "XC-BYTES-002")
def test_hits_at_once_misses_when_they_are_read_failures_never() -> None:
    found = machine()
    first = found.select(Event(0, ((0, 1, 2),)))
    assert computable(found, first.ticket) == frozenset()
    found.complete(Key(0, 1))
    found.fail(Key(0, 2))
    second = found.select(Event(0, ((1, 0),), stream=1))
    assert computable(found, second.ticket) == {Key(0, 1)}
    found.complete(Key(0, 0))
    assert computable(found, first.ticket) == computable(found, second.ticket) == {Key(0, 0), Key(0, 1)}
    found.release(first.ticket)
    with pytest.raises(WrongState, match=f"ticket {first.ticket}"):
        computable(found, first.ticket)


@pytest.mark.rule("XC-BYTES-001")
def test_what_is_not_kept_is_computed_with_all_the_same() -> None:
    found = machine(slots=0)
    event = Event(1, ((3, 4),))
    assert computable(found, found.select(event).ticket) == set(event.keys)


@pytest.mark.rule("XC-BYTES-001")
def test_whatever_happens_in_between_what_is_computable_stays_so_until_the_release() -> None:
    for seed in range(40):
        choose, found, before = random.Random(seed), machine(slots=5, no_victim="bypass"), dict[int, frozenset[Key]]()
        for turn in range(40):
            if choose.random() < 0.5:
                found.select(Event(turn % 2, (tuple(choose.sample(range(6), 2)),), stream=turn))
            elif found.flights and choose.random() < 0.6:
                (found.complete if choose.random() < 0.8 else found.fail)(choose.choice(sorted(found.flights)))
            else:
                ready = [ticket for ticket, lease in found.leases.items() if not lease.pending]
                found.release(choose.choice(ready)) if ready else None
            now = {ticket: computable(found, ticket) for ticket in found.leases}
            assert all(before[ticket] <= keys for ticket, keys in now.items() if ticket in before)
            before = now


@pytest.mark.rule("XC-BYTES-003")
def test_the_bytes_of_two_records_two_models_and_two_places_differ() -> None:
    keys = [Key(layer, expert) for layer in range(3) for expert in range(12)]
    records = {(model, key): pattern(model, key, 64) for model in ("model-a", "model-b") for key in keys}
    assert len(set(records.values())) == len(records)
    for record in records.values():
        assert len({record[at : at + 8] for at in range(56)}) == 56
    first = records["model-a", keys[0]]
    assert all(sum(a == b for a, b in zip(first, other, strict=True)) < 8 for other in list(records.values())[1:])
    assert pattern("model-a", keys[0], 16) == first[:16]
