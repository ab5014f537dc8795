"""The residency machine as a state machine: every transition, in any order, against the books, in both forms."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.residency import SETTINGS, Settings
from expertcache_spec.trace import Event

from . import strategies
from .books import Watched
from .settings_of_policies import SUBJECTS

POLICY = st.sampled_from(sorted(SUBJECTS))
SCOPES = ("counters", "history", "contents")


class AnyOrder(RuleBasedStateMachine):
    """Several events outstanding, and everything that may happen around them."""

    watched: Watched

    @initialize(data=st.data(), policy=POLICY)
    def begin(self, data: st.DataObject, policy: str) -> None:
        geometry = data.draw(strategies.geometries(layers=2, experts=5))
        before: dict[int, list[strategies.Row]] = {layer: [] for layer in geometry.routed}
        events = [
            data.draw(
                strategies.events(geometry, layer, phase, before[layer], stream=number % 3, pass_index=number // 3)
            )
            for number, (layer, phase) in enumerate(
                data.draw(
                    st.lists(
                        st.tuples(st.sampled_from(geometry.routed), st.sampled_from(["decode", "verify"])), max_size=20
                    )
                )
            )
        ]
        chosen = data.draw(strategies.settings(policy))
        self.watched = Watched(geometry, data.draw(strategies.budgets(geometry)), policy, chosen, events)

    def keys(self, data: st.DataObject, *, strange: bool = False) -> Key:
        """A key of the model, or beside it."""
        geometry, extra = self.watched.geometry, int(strange)
        return Key(
            data.draw(st.integers(0, geometry.layers - 1 + extra)),
            data.draw(st.integers(-extra, geometry.experts - 1 + extra)),
        )

    @invariant()
    def the_books_are_right(self) -> None:
        if hasattr(self, "watched"):
            self.watched.check()

    @precondition(lambda self: any(self.watched.coming.values()))
    @rule(data=st.data())
    def select(self, data: st.DataObject) -> None:
        layers = [layer for layer, events in self.watched.coming.items() if events]
        self.watched.select(data.draw(st.sampled_from(layers)))

    @precondition(lambda self: self.watched.books.flying)
    @rule(data=st.data(), well=st.sampled_from([True, True, True, False]))
    def land(self, data: st.DataObject, well: bool) -> None:
        self.watched.land(data.draw(st.sampled_from(sorted(self.watched.books.flying))), well=well)

    @precondition(lambda self: self.watched.books.leases)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        self.watched.release(data.draw(st.sampled_from(sorted(self.watched.books.leases))))

    @precondition(lambda self: self.watched.unfinished)
    @rule(data=st.data())
    def resume(self, data: st.DataObject) -> None:
        self.watched.resume(data.draw(st.sampled_from(self.watched.unfinished)))

    @rule(data=st.data())
    def pin(self, data: st.DataObject) -> None:
        self.watched.pin(self.keys(data))

    @rule(data=st.data())
    def unpin(self, data: st.DataObject) -> None:
        self.watched.unpin(self.keys(data))

    @rule(data=st.data())
    def seed(self, data: st.DataObject) -> None:
        self.watched.seed([self.keys(data, strange=True) for _ in range(data.draw(st.integers(0, 4)))])

    @rule(data=st.data())
    def prefetch(self, data: st.DataObject) -> None:
        self.watched.prefetch(self.keys(data, strange=True))

    @rule(data=st.data())
    def resize(self, data: st.DataObject) -> None:
        known = data.draw(strategies.budgets(self.watched.geometry))
        self.watched.resize(data.draw(st.sampled_from([known, Budget(bytes=3)])))

    @rule(scope=st.sampled_from(SCOPES))
    def reset(self, scope: str) -> None:
        self.watched.reset(scope)

    @rule(fingerprint=st.sampled_from(["", "a", "b"]))
    def rebind(self, fingerprint: str) -> None:
        self.watched.rebind(fingerprint)

    @rule(data=st.data(), well=st.booleans(), ticket=st.integers(0, 8))
    def misuse(self, data: st.DataObject, well: bool, ticket: int) -> None:
        """What is not in flight, not leased, or not to be resumed (now and then it is)."""
        self.watched.land(self.keys(data), well=well)
        self.watched.release(ticket)
        if self.watched.selections:
            self.watched.resume(data.draw(st.sampled_from(list(self.watched.selections.values()))))


MACHINE_RULES = pytest.mark.rule(
    "XC-RES-001", "XC-RES-002", "XC-RES-003", "XC-RES-004", "XC-RES-005", "XC-RES-008", "XC-RES-009", "XC-RES-010",
    "XC-RES-011", "XC-RES-012", "XC-RES-013", "XC-RES-014", "XC-RES-015", "XC-RES-016", "XC-RES-017", "XC-RES-018",
    "XC-RES-020", "XC-RES-021", "XC-RES-022", "XC-RES-023", "XC-RES-024", "XC-RES-027", "XC-RES-028", "XC-EVICT-003",
)  # fmt: skip


@MACHINE_RULES
def test_any_order_of_transitions_keeps_the_books() -> None:
    run_state_machine_as_test(
        AnyOrder,
        settings=settings(
            settings.get_profile(settings.get_current_profile_name()),
            max_examples=100 if settings.default.max_examples <= 100 else 3000,
            stateful_step_count=40,
            suppress_health_check=list(HealthCheck),
        ),
    )


# ---------------------------------------------------------------------------------------------- seeded volume


def random_run(seed: int, transitions: int, **fixed: str) -> dict[str, int]:
    """One machine under that many random transitions, weighted so that events get served; how often what happened."""
    random = Random(seed)
    policy = random.choice(sorted(SUBJECTS))
    geometry = strategies.random_geometry(random)
    while not strategies.defined(policy, chosen := _settings(random, fixed)):
        pass
    seen: dict[int, list[strategies.Row]] = {layer: [] for layer in geometry.routed}
    events = [_event(random, geometry, seen, number) for number in range(transitions // 3)]
    watched = Watched(geometry, strategies.random_budget(random, geometry), policy, chosen, events)
    happened = dict.fromkeys(("victims", "joined", "resumed", "waits", "refused", "over"), 0)
    for _ in range(transitions):
        _one(random, watched, happened)
        watched.check()
        happened["over"] += any(watched.books.over(part) for part in watched.machine.parts)
    happened["victims"] += watched.machine.counters.total().evictions
    return happened


def _settings(random: Random, fixed: dict[str, str]) -> Settings:
    return Settings(**{name: fixed.get(name, random.choice(values)) for name, values in SETTINGS.items()})  # type: ignore[arg-type]


def _event(random: Random, geometry: Geometry, seen: dict[int, list[strategies.Row]], number: int) -> Event:
    layer, stream = random.choice(geometry.routed), random.randrange(3)
    batch = tuple(strategies.random_row(random, geometry, seen[layer]) for _ in range(random.choice((1, 1, 3))))
    accepted = random.randint(0, len(batch)) if random.random() < 0.3 else None
    return Event(layer, batch, stream, number, "decode" if accepted is None else "verify", accepted=accepted)


def _one(random: Random, watched: Watched, happened: dict[str, int]) -> None:
    books, geometry = watched.books, watched.geometry
    key = Key(random.randint(0, geometry.layers - 1), random.randint(0, geometry.experts - 1))
    if books.flying and random.random() < 0.55:
        watched.land(random.choice(sorted(books.flying)), well=random.random() < 0.9)
        return
    if books.leases and random.random() < 0.4:
        watched.release(random.choice(sorted(books.leases)))
        return
    if watched.unfinished and random.random() < 0.5:
        watched.resume(random.choice(watched.unfinished))
        happened["resumed"] += 1
        return
    layers = [layer for layer, events in watched.coming.items() if events]
    dice = random.random()
    if layers and dice < 0.7:
        layer, count = random.choice(layers), len(watched.selections)
        happened["joined"] += any(k in books.flying for k in watched.coming[layer][0].keys)
        watched.select(layer)
        happened["waits"] += len(watched.selections) == count
    elif dice < 0.76:
        watched.pin(random.choice(sorted(books.resident)) if books.resident else key)
    elif dice < 0.82:
        watched.unpin(random.choice(sorted(books.pins)) if books.pins else key)
    elif dice < 0.87:
        watched.prefetch(key)
    elif dice < 0.90:
        watched.seed([key, Key(key.layer, (key.expert + 1) % geometry.experts), Key(99, 0)])
    elif dice < 0.96:
        watched.resize(strategies.random_budget(random, geometry))
    elif dice < 0.98:
        watched.reset(random.choice(SCOPES))
    else:
        watched.rebind(random.choice(["", "a"]))


def totals(runs: list[dict[str, int]]) -> dict[str, int]:
    """The sum of what happened."""
    return {name: sum(run[name] for run in runs) for name in runs[0]}


@MACHINE_RULES
@pytest.mark.parametrize("room", SETTINGS["room"])
def test_any_order_of_transitions_keeps_the_books_in_volume(room: str) -> None:
    happened = totals([random_run(seed, 120, room=room) for seed in range(25)])
    assert all(happened[name] > 0 for name in ("victims", "joined", "waits", "over")), happened


@pytest.mark.nightly
@MACHINE_RULES
@pytest.mark.parametrize("room", SETTINGS["room"])
@pytest.mark.parametrize("scope", SETTINGS["scope"])
def test_any_order_of_transitions_keeps_the_books_in_much_more_volume(room: str, scope: str) -> None:
    happened = totals([random_run(seed, 300, room=room, scope=scope) for seed in range(1000, 1600)])
    print(room, scope, happened)
    assert all(happened[name] > 0 for name in ("victims", "joined", "waits", "over")), happened
