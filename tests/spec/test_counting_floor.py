"""Static and random, the two that learn nothing: laws, refusals and the declared hash."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from itertools import permutations
from random import Random

import pytest

from expertcache_spec.errors import UnknownName
from expertcache_spec.eviction import make
from expertcache_spec.eviction.counting.random import draw
from expertcache_spec.eviction.counting.static import parse
from expertcache_spec.eviction.spelling import parse as parse_policy
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.replay import Replay, replay, run_event
from expertcache_spec.residency import Residency, Settings
from expertcache_spec.trace import Event, Trace, decode_trace

from .counting import steps_of, victims
from .strategies import random_case, random_trace

FORMS = ["indexed", "declarative"]


def cache(
    form: str, policy: str = "static", slots: int = 3, settings: Settings | None = None, **values: str
) -> Residency:
    """One layer of eight experts."""
    return Residency(
        Geometry(1, 8, 2),
        Budget(slots=slots),
        make(policy, form, parameters=values),
        settings or Settings(),  # type: ignore[arg-type]
    )


def ask(machine: Residency, *experts: int, number: int = 0) -> list[int]:
    """Serve one event; who left."""
    return [key.expert for key in run_event(machine, Event(0, (experts,), pass_index=number)).victims]


# ---------------------------------------------------------------------------------------------- static


@pytest.mark.rule("XC-EVICT-083")
def test_static_never_evicts_its_set_where_the_set_and_an_event_fit() -> None:
    gone: Counter[bool] = Counter()
    for seed in range(40):
        random = Random(seed)
        trace = random_trace(random, Geometry(2, 9, 3), streams=2, passes=8, phases=("decode",))
        chosen = random.sample(range(9), 3)
        keys = "+".join(f"*.{expert}" for expert in chosen)
        for step in Replay(trace, "static", Budget(slots=6 + 3), parameters={"keys": keys}):
            gone.update(key.expert in chosen for key in step.victims)
    assert gone[True] == 0 < 100 < gone[False]


@pytest.mark.rule("XC-EVICT-083")
@pytest.mark.parametrize("keys", ["", "*.0-99"])
def test_static_of_nothing_or_of_everything_is_lru(keys: str) -> None:
    for seed in range(40):
        case = random_case(seed, "lru")
        assert steps_of(case, "static", keys=keys) == steps_of(case, "lru"), seed


@pytest.mark.rule("XC-EVICT-083")
def test_members_leave_when_nothing_else_is_evictable() -> None:
    assert victims([[0], [1], [2], [3]], "static", 2, keys="0.0-1") == [0, 2]
    assert victims([[0], [1], [2], [3]], "static", 3, keys="0.0-1") == [2]
    assert victims([[5], [4], [0]], "static", 2, rest="key") == [4]


@pytest.mark.rule("XC-EVICT-083", "XC-EVICT-084")
@pytest.mark.parametrize("form", FORMS)
def test_seed_lists_make_the_set_and_priorities_order_it(form: str) -> None:
    machine = cache(form, slots=2)
    machine.seed([Key(0, 0), Key(0, 1), Key(0, 7)], [2, 1])
    for expert in (0, 1):
        machine.complete(Key(0, expert))
    assert ask(machine, 2) == [1]
    assert ask(machine, 3, number=1) == [2]
    assert ask(machine, 1, number=2) == [3]
    # 7 was refused for want of room, and is a member with priority 0 nevertheless.
    assert ask(machine, 7, number=3) == [1]
    assert ask(machine, 3, number=4) == [7]


@pytest.mark.rule("XC-EVICT-084", "XC-RES-022")
@pytest.mark.parametrize("form", FORMS)
def test_a_reset_of_history_leaves_the_set_and_one_of_contents_forgets_the_lists(form: str) -> None:
    machine = cache(form, slots=2, keys="0.1")
    machine.seed([Key(0, 0)])
    machine.complete(Key(0, 0))
    machine.reset("history")
    assert [ask(machine, expert, number=n) for n, expert in enumerate((1, 2))] == [[], [0]]
    machine.reset("contents")
    assert [ask(machine, expert, number=n) for n, expert in enumerate((1, 0, 2), 2)] == [[], [], [0]]


@pytest.mark.rule("XC-EVICT-084")
@pytest.mark.parametrize("form", FORMS)
def test_naming_a_resident_moves_it_up_without_making_it_recent(form: str) -> None:
    machine = cache(form, slots=3)
    for number, expert in enumerate((0, 1, 2)):
        ask(machine, expert, number=number)
    machine.seed([Key(0, 1), Key(0, 0)], [1, 1])
    assert [ask(machine, expert, number=3 + n) for n, expert in enumerate((3, 4))] == [[2], [3]]
    machine.seed([Key(0, 4)], [1])
    assert ask(machine, 5, number=5) == [0]


@pytest.mark.rule("XC-EVICT-085")
def test_under_refusable_only_members_displace() -> None:
    settings = Settings(admission="refusable")
    trace = decode_trace([[5], [6], [0], [6], [5], [1], [7], [0, 1]])
    for form in ("indexed", "declarative"):
        run = Replay(trace, "static", Budget(slots=2), settings, form=form, parameters={"keys": "0.0-1"})  # type: ignore[arg-type]
        steps = list(run)
        assert [[key.expert for key in step.victims] for step in steps] == [[], [], [5], [], [], [6], [], []]
        assert [[key.expert for key in step.refused] for step in steps] == [[], [], [], [], [5], [], [7], []]
        assert len(steps[-1].hits) == 2


@pytest.mark.rule("XC-EVICT-086")
def test_a_set_is_written_as_layers_and_experts() -> None:
    profile = parse(" 3.17+3.20-22  *.0 ")
    members = [
        Key(layer, expert) for layer in range(5) for expert in range(30) if profile.standing(Key(layer, expert)) > (0,)
    ]
    assert members == [
        *(Key(layer, 0) for layer in range(4)), Key(3, 17), Key(3, 20), Key(3, 21), Key(3, 22), Key(4, 0),
    ]  # fmt: skip
    assert parse_policy("static:keys=3.17+3.20-29+*.0:rest=key").parameters == {
        "keys": "3.17+3.20-29+*.0",
        "rest": "key",
    }


@pytest.mark.rule("XC-EVICT-086")
@pytest.mark.parametrize(
    "keys", ["3", "3.x", "3.5-2", "-1.2", "3.1,4", "3.1+", "3.1-", "a.1", "1.2.3", "1." + "9" * 10]
)
def test_a_set_that_cannot_be_read_is_refused_and_shown(keys: str) -> None:
    with pytest.raises(UnknownName, match=r"write 3\.17") as refusal:
        Replay(decode_trace([[0]]), "static", Budget(slots=1), parameters={"keys": keys})
    assert keys in str(refusal.value)


# ---------------------------------------------------------------------------------------------- random


@pytest.mark.rule("XC-EVICT-088")
def test_the_draw_is_the_declared_hash() -> None:
    digest = blake2b(b"7 3 1889 2", digest_size=8).hexdigest()
    assert draw(7, 3, 1889, 2) == int(digest, 16) % 1889
    # By coreutils: printf '0 0 1000 0' | b2sum -l 64, and so on.
    assert [draw(0, event, 1000, 0) for event in range(4)] == [558, 468, 463, 402]


@pytest.mark.rule("XC-EVICT-087", "XC-EVICT-088")
@pytest.mark.parametrize("form", FORMS)
def test_the_victim_is_the_drawn_one_of_the_evictable_keys_by_insert(form: str) -> None:
    for seed in range(8):
        random = Random(seed)
        machine = Residency(Geometry(2, 8, 3), Budget(slots=6), make("random", form, parameters={"seed": seed}))  # type: ignore[arg-type]
        inserted: list[Key] = []
        for number in range(30):
            layer = number % 2
            event = Event(layer, (tuple(random.sample(range(8), 3)),), pass_index=number // 2)
            free = [key for key in inserted if key not in event.keys]
            lacking = len({*inserted, *event.keys}) - 6
            expected = []
            for _ in range(max(0, lacking)):
                text = f"{seed} {number + 1} {len(free)} {free[0].layer}".encode()
                expected.append(free.pop(int(blake2b(text, digest_size=8).hexdigest(), 16) % len(free)))
            step = run_event(machine, event)
            assert list(step.victims) == expected
            inserted = [*(key for key in inserted if key not in expected), *step.misses]


@pytest.mark.rule("XC-EVICT-087")
def test_every_evictable_key_is_drawn_alike() -> None:
    for count in (2, 3, 7):
        found = Counter(draw(1, event, count, 0) for event in range(7000))
        assert sorted(found) == list(range(count))
        assert all(abs(times - 7000 / count) < 4 * (7000 / count) ** 0.5 for times in found.values())


@pytest.mark.rule("XC-EVICT-088")
def test_seeds_and_layers_draw_apart_and_one_seed_draws_the_same() -> None:
    trace = random_trace(Random(5), Geometry(2, 12, 3), passes=30, phases=("decode",))
    settings = Settings(scope="layer")

    def gone(seed: int) -> list[Key]:
        run = Replay(trace, "random", Budget(slots=8), settings, parameters={"seed": seed})
        return [key for step in run for key in step.victims]

    assert gone(1) == gone(1)
    assert len({tuple(gone(seed)) for seed in range(20)}) == 20
    same = [
        Event(layer, (tuple(row),), pass_index=n) for n, row in enumerate([[0, 1], [2, 3]] * 15) for layer in (0, 1)
    ]
    run = Replay(Trace(Geometry(2, 4, 2), tuple(same)), "random", Budget(slots=6), settings)
    by_layer: dict[int, list[int]] = {0: [], 1: []}
    for step in run:
        for key in step.victims:
            by_layer[key.layer].append(key.expert)
    assert len(by_layer[0]) > 10
    assert by_layer[0] != by_layer[1]


@pytest.mark.rule("XC-EVICT-089", "XC-EVICT-087")
@pytest.mark.parametrize("form", FORMS)
def test_asking_again_changes_nothing_and_neither_do_the_names_of_experts(form: str) -> None:
    places = set()
    for names in permutations(range(4)):
        policy = make("random", form, parameters={"seed": 3})()  # type: ignore[arg-type]
        for now, expert in enumerate(names):
            policy.insert(Key(0, expert), now)
        answers = [policy.victim({Key(0, names[2])}, None) for _ in range(5)]
        assert answers[0] is not None
        assert set(answers) == {answers[0]}
        places.add(names.index(answers[0].expert))
    assert len(places) == 1
    assert places != {2}


@pytest.mark.rule("XC-EVICT-006", "XC-EVICT-087")
def test_on_uniform_requests_random_hits_capacity_over_experts() -> None:
    random = Random(11)
    trace = decode_trace([[random.randrange(20)] for _ in range(6000)], experts=20)
    for slots in (5, 10, 15):
        total = replay(trace, "random", Budget(slots=slots)).total
        assert abs(total.hits / total.lookups - slots / 20) < 0.025
