"""ds4's route hotness: its model as the survey of the engine gives it (section 11), and each clause by hand."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import attrs
import pytest

from expertcache_spec.eviction import POLICIES, Form, Policy, make
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.replay import replay, run_event
from expertcache_spec.residency import Residency, Settings
from expertcache_spec.trace import Event, Trace, decode_trace

from .stack_table import contents, is_included
from .strategies import random_trace

DS4 = Settings(touch="hits_first", repeats="ignore", overflow="bypass")
FORMS: tuple[Form, ...] = ("declarative", "indexed")
BOTH = pytest.mark.parametrize("form", FORMS)


def policy(form: Form = "indexed", **parameters: Any) -> Policy:
    """One policy object, to be driven by hand."""
    return make("route-hotness", form, parameters=parameters)()


def token(number: int, *experts: int, layer: int = 0, stream: int = 0) -> Event:
    """One layer of one decoded token."""
    return Event(layer, (experts,), stream, number)


# ---------------------------------------------------------------------------------------------- the engine's model


@attrs.define
class Ds4:
    """Section 11 in its own words: R with last_used, a clock, hotness of all pairs, tokens, decay_token."""

    capacity: int
    last_used: dict[Key, int] = attrs.field(factory=dict)
    clock: int = 0
    hotness: dict[Key, int] = attrs.field(factory=dict)
    tokens: int = 0
    decay_token: int = 0

    def decay(self) -> None:
        if self.decay_token == 0:
            self.decay_token = self.tokens
            return
        while self.tokens - self.decay_token >= 16:
            self.decay_token += 16
            for key in self.hotness:
                self.hotness[key] >>= 1

    def install(self, keys: list[Key]) -> None:
        for key in keys:
            self.clock += 1
            self.last_used[key] = self.clock

    def load(self, ids: list[Key]) -> tuple[list[Key], list[Key]]:
        """Hits re-stamped, then every victim, then the installs in slot order; hits and victims."""
        hits = [key for key in ids if key in self.last_used]
        self.install(hits)
        victims, installed = [], []
        for key in ids:
            if key in hits:
                continue
            if len(self.last_used) + len(installed) >= self.capacity:
                candidates = [(self.hotness.get(k, 0), used, k) for k, used in self.last_used.items() if k not in ids]
                if not candidates:
                    continue
                victim = min(candidates)[2]
                del self.last_used[victim]
                victims.append(victim)
            installed.append(key)
        self.install(installed)
        return hits, victims

    def decode(self, event: Event) -> tuple[list[Key], list[Key]]:
        if event.layer == 0:
            self.tokens += 1
        self.decay()
        for key in event.keys:
            self.hotness[key] = self.hotness.get(key, 0) + 1
        return self.load(list(event.keys))

    def batch(self, event: Event) -> tuple[list[Key], list[Key]]:
        if event.layer == 0 and (event.positions or [event.pass_index])[0] == 0:
            self.hotness.clear()
            self.decay_token = self.tokens
        self.decay()
        for key in event.selections():
            self.hotness[key] = self.hotness.get(key, 0) + 1
        return self.load(list(event.keys))

    def seed(self, keys: list[Key], priorities: list[int]) -> None:
        self.decay()
        for key, priority in zip(keys, priorities, strict=True):
            self.hotness[key] = self.hotness.get(key, 0) + max(1, priority)
            if key not in self.last_used and len(self.last_used) < self.capacity:
                self.install([key])


def placed(event: Event, start: int | None) -> Event:
    """A prompt from that position on, if one is given; anything else as it is."""
    if start is None or event.phase != "prefill":
        return event
    return attrs.evolve(event, positions=tuple(range(start, start + len(event.rows))))


def conversations(seed: int) -> tuple[Trace, int]:
    """Prompts and tokens of several conversations over a small model, and a capacity; most prompts have positions."""
    random = Random(seed)
    geometry = Geometry(random.randint(1, 3), random.randint(4, 9), random.randint(1, 3))
    drawn = random_trace(random, geometry, streams=random.randint(1, 3), passes=30, phases=("prefill", *["decode"] * 6))
    starts = {(event.stream, event.pass_index): random.choice((None, 0, 0, 6)) for event in drawn.events}
    events = [placed(event, starts[event.stream, event.pass_index]) for event in drawn.events]
    trace = Trace(geometry, tuple(events))
    return trace, random.randint(0, geometry.experts * geometry.layers)


@pytest.mark.rule(
    "XC-EVICT-180", "XC-EVICT-181", "XC-EVICT-182", "XC-EVICT-184", "XC-EVICT-185", "XC-EVICT-186", "XC-RES-006"
)
@BOTH
def test_every_step_is_that_of_the_engines_model(form: Form) -> None:
    victims = halvings = 0
    for seed in range(60):
        trace, capacity = conversations(seed)
        model, random = Ds4(capacity), Random(seed)
        machine = Residency(trace.geometry, Budget(slots=capacity), make("route-hotness", form), DS4)
        for event in trace.events:
            if random.random() < 0.05:
                keys = random.sample(list(trace.geometry.keys()), 3)
                for key in machine.seed(keys, [40, 3, 0]).reads:
                    machine.complete(key)
                model.seed(keys, [40, 3, 0])
            step = run_event(machine, event)
            expected = (model.decode if event.phase == "decode" else model.batch)(event)
            assert (list(step.hits), list(step.victims)) == expected, (seed, event)
            victims += len(step.victims)
        assert machine.residents() == set(model.last_used)
        halvings += model.tokens // 16
    assert victims > 1000
    assert halvings > 30


@pytest.mark.rule("XC-RES-006", "XC-EVICT-003", "XC-EVICT-180")
@BOTH
def test_within_a_layer_hotness_is_counted_then_hits_are_stamped_then_victims_leave_then_loads_arrive(
    form: Form,
) -> None:
    # Slots 5: 0 and 1 are asked for twice, 2, 3, 4 once. The next layer asks for 3 (a hit), 5 and 6: the victims are
    # the least recent of hotness 1 that it does not ask for, 2 and 4. Its own come after its hit: 3, 5, 6.
    machine = Residency(Geometry(1, 9, 3), Budget(slots=5), make("route-hotness", form), DS4)
    for number, row in enumerate([(0, 1), (0, 1), (2, 3, 4)]):
        run_event(machine, token(number, *row))
    step = run_event(machine, token(3, 5, 3, 6))
    assert ([key.expert for key in step.hits], [key.expert for key in step.victims]) == ([3], [2, 4])
    # 3 has hotness 2 by now; of 5 and 6, once each, 5 was installed first.
    assert [k.expert for k in run_event(machine, token(4, 7, 8)).victims] == [5, 6]
    # 0, 1 and 3 have two each: the least recent pair goes, in the order in which it was stamped.
    assert [k.expert for k in run_event(machine, token(5, 7, 8, 2)).victims] == [0]


@pytest.mark.rule("XC-EVICT-002", "XC-EVICT-180")
def test_at_equal_hotness_and_stamp_the_lowest_layer_and_expert_goes_first() -> None:
    # The engine's own test: flat ids 0, 511, 512, 40959 at 512 experts a layer. Its stamps are unique, and so are ours:
    # only the rule, driven by hand, can be given equal ones.
    keys = [Key(79, 511), Key(1, 0), Key(0, 511), Key(0, 0)]
    rule = policy("declarative")
    for key in keys:
        rule.insert(key, 7)
    order = []
    while (victim := rule.victim((), None)) is not None:
        rule.evict(victim)
        order.append(victim)
    assert order == [Key(0, 0), Key(0, 511), Key(1, 0), Key(79, 511)]


# ---------------------------------------------------------------------------------------------- decay


def outlives(form: Form, priority: int, earlier: int) -> int:
    """How many tokens a seed outlives a record without hotness, in a conversation after `earlier` tokens."""
    tested = policy(form)
    for number in range(earlier):
        tested.begin(token(number, 9))
    tested.begin(Event(0, ((8,),), 1, 0, "prefill"))
    tested.insert(Key(0, 0), 1)
    tested.prioritize(Key(0, 0), priority)
    tested.insert(Key(0, 1), 2)
    tokens = 0
    while tested.victim((), None) == Key(0, 1):
        tokens += 1
        tested.begin(token(tokens, 9, stream=1))
    return tokens - 1  # the token that brings the last halving finds the seed evictable already


BOUNDS = [(0, 16), (1, 16), (2, 32), (31, 80), (32, 96), (33, 96), (4095, 192), (4096, 208), (8191, 208)]


@pytest.mark.rule("XC-EVICT-187", "XC-EVICT-185", "XC-EVICT-182")
@BOTH
@pytest.mark.parametrize(("priority", "tokens"), BOUNDS)
def test_a_seed_that_nothing_asks_for_is_evictable_after_a_bounded_number_of_tokens(
    priority: int, tokens: int, form: Form
) -> None:
    assert outlives(form, priority, earlier=0) == tokens
    # The first conversation notes the time with its first token, a later one before it: one token less.
    assert outlives(form, priority, earlier=40) == tokens - 1


@pytest.mark.rule("XC-EVICT-182")
@BOTH
def test_halving_rounds_down_and_happens_before_the_tokens_own_selections_are_counted(form: Form) -> None:
    tested: Any = policy(form, halve_every=2)
    found = []
    for number in range(5):
        tested.begin(token(number, 0, *([1] if number == 0 else [])))
        found.append((tested.hotness.of.get(Key(0, 0), 0), tested.hotness.of.get(Key(0, 1), 0)))
    assert found == [(1, 1), (2, 1), (2, 0), (3, 0), (2, 0)]


@pytest.mark.rule("XC-EVICT-182")
@BOTH
@pytest.mark.parametrize(("clock_layer", "halved"), [(0, False), (3, True), (-1, True)])
def test_a_model_whose_first_routed_layer_is_not_the_clocks_never_ages(
    clock_layer: int, halved: bool, form: Form
) -> None:
    # ds4 [A] counted tokens at layer 0, for GLM at layer 3; a slice that begins elsewhere kept its hotness for good.
    tested: Any = policy(form, clock_layer=clock_layer)
    for number in range(20):
        for layer in (3, 4):
            tested.begin(token(number, 0, layer=layer))
    assert (tested.hotness.of[Key(4, 0)] < 20) is halved


@pytest.mark.rule("XC-EVICT-182", "XC-EVICT-186")
@pytest.mark.parametrize(("phases", "tokens"), [("decode", 2), ("generation", 5)])
def test_a_prompt_moves_no_clock_and_a_verification_moves_it_by_its_rows_or_not_as_declared(
    phases: str, tokens: int
) -> None:
    tested: Any = policy(clock_phases=phases)
    tested.begin(Event(0, ((0,), (1,), (0,)), phase="prefill"))
    for number in (1, 2):
        tested.begin(token(number, 2))
    tested.begin(Event(0, ((3,), (3,), (4,)), 0, 3, "verify", accepted=1))
    assert tested.hotness.clock.tokens == tokens
    assert tested.hotness.of == {Key(0, 0): 2, Key(0, 1): 1, Key(0, 2): 2, Key(0, 3): 2, Key(0, 4): 1}


@pytest.mark.rule("XC-EVICT-182")
@BOTH
def test_victims_chosen_early_differ_only_where_a_halving_is_due(form: Form) -> None:
    # Tokens 1 to 17 of one layer. 0 has hotness 3 and 1 has 2: before the halving of token 17 the victim is 1; after
    # it both have 1, and 0 is the less recent.
    rows = [(0,), (0,), (0,), (1,), (1,), *[(2,)] * 11, (3,)]
    found = {}
    for early in (False, True):
        trace = decode_trace([list(row) for row in rows], experts=4)
        machine = Residency(trace.geometry, Budget(slots=3), make("route-hotness", form, None, {"early_load": early}))
        found[early] = [run_event(machine, event).victims for event in trace.events][-1]
    assert found == {False: (Key(0, 0),), True: (Key(0, 1),)}


@pytest.mark.rule("XC-EVICT-182")
def test_two_replays_that_choose_early_and_late_part_at_a_halving_or_never() -> None:
    parted = 0
    for seed in range(300):
        random = Random(seed)
        geometry = Geometry(2, 6, 2)
        trace = random_trace(random, geometry, passes=60, phases=("decode",))
        slots = Budget(slots=random.randint(2, 10))
        machines = [Residency(geometry, slots, make("route-hotness", "indexed", None, {"early_load": early}), DS4)
                    for early in (False, True)]  # fmt: skip
        for event in trace.events:
            late, early = (run_event(machine, event) for machine in machines)
            if late != early:
                assert event.layer == 0
                assert event.pass_index % 16 == 0
                parted += 1
                break
    assert parted > 5


# ---------------------------------------------------------------------------------------------- what is counted


@pytest.mark.rule("XC-EVICT-181")
@BOTH
def test_a_key_gains_hotness_while_it_is_away_and_keeps_it_when_evicted(form: Form) -> None:
    # One slot of two is fought over by 1 and 2, always misses; hit counts would rank both below 0 for ever.
    machine = Residency(Geometry(1, 4, 1), Budget(slots=2), make("route-hotness", form), DS4)
    steps = [run_event(machine, token(n, e)) for n, e in enumerate([0, 0, 1, 2, 1, 2, 1])]
    assert [[key.expert for key in step.victims] for step in steps] == [[], [], [], [1], [2], [0], []]


@pytest.mark.rule("XC-EVICT-183")
@BOTH
def test_hotness_stops_at_the_ceiling(form: Form) -> None:
    tested: Any = policy(form)
    for _ in range(2):
        tested.prioritize(Key(0, 0), (1 << 32) - 1)
    assert tested.hotness.of[Key(0, 0)] == (1 << 32) - 1
    low: Any = policy(form, ceiling=2)
    for number in range(5):
        low.begin(token(number, 0))
    assert low.hotness.of[Key(0, 0)] == 2


@pytest.mark.rule("XC-EVICT-185")
@BOTH
def test_seeding_again_adds_again_and_leaves_recency_alone(form: Form) -> None:
    machine: Any = Residency(Geometry(1, 6, 1), Budget(slots=2), make("route-hotness", form), DS4)
    for key in machine.seed([Key(0, 0), Key(0, 1), Key(0, 2)], [2, 2, 9]).reads:
        machine.complete(key)
    assert machine.seed([Key(0, 0)], [1]).present == 1
    assert machine.parts[-1].policy.hotness.of == {Key(0, 0): 3, Key(0, 1): 2, Key(0, 2): 9}
    assert run_event(machine, token(0, 3)).victims == (Key(0, 1),)
    assert run_event(machine, token(1, 4)).victims == (Key(0, 3),)


@pytest.mark.rule("XC-EVICT-184", "XC-RES-022")
@BOTH
@pytest.mark.parametrize(
    ("event", "reset_at", "forgets"),
    [
        pytest.param(Event(0, ((5,),), 1, 0, "prefill"), "prompt", True, id="a new prompt"),
        pytest.param(Event(0, ((5,),), 1, 0, "prefill", positions=(8,)), "prompt", False, id="a prompt that continues"),
        pytest.param(Event(0, ((5,),), 0, 9, "prefill"), "prompt", False, id="a later prompt of the same stream"),
        pytest.param(
            Event(0, ((5,),), 0, 3, "prefill", positions=(0,)), "prompt", True, id="a new prompt of the same stream"
        ),
        pytest.param(Event(0, ((5,),), 0, 3, "decode", positions=(0,)), "prompt", False, id="a token, from position 0"),
        pytest.param(Event(0, ((5,),), 1, 0, "decode"), "prompt", False, id="a stream whose prompt is not recorded"),
        pytest.param(
            Event(0, ((5,),), 1, 0, "decode"), "stream", True, id="the same, where a stream is a conversation"
        ),
        pytest.param(
            Event(0, ((5,),), 1, 0, "decode", positions=(8,)), "stream", True, id="the same, after a prompt of 8 tokens"
        ),
        pytest.param(
            Event(0, ((5,),), 0, 3, "prefill", positions=(0,)), "stream", False, id="one conversation is one stream"
        ),
        pytest.param(Event(1, ((5,),), 1, 0, "prefill"), "prompt", False, id="the next layer of a prompt"),
        pytest.param(Event(0, ((5,),), 1, 0, "prefill"), "never", False, id="a new prompt that resets nothing"),
    ],
)
def test_only_the_start_of_a_conversation_zeroes_hotness(
    event: Event, reset_at: str, forgets: bool, form: Form
) -> None:
    tested: Any = policy(form, reset_at=reset_at)
    for number in range(3):
        tested.begin(token(number, 0))
    tested.begin(event)
    assert tested.hotness.of[Key(event.layer, 5)] == 1
    assert (Key(0, 0) not in tested.hotness.of) is forgets
    assert tested.hotness.clock.halved_at == (3 if forgets else 1)


@pytest.mark.rule("XC-EVICT-184", "XC-RES-022")
@BOTH
@pytest.mark.parametrize("by", ["prompt", "history"])
def test_after_a_reset_recency_alone_decides_until_something_is_asked_for(by: str, form: Form) -> None:
    machine = Residency(Geometry(1, 9, 1), Budget(slots=3), make("route-hotness", form), DS4)
    for number, expert in enumerate([0, 0, 0, 1, 1, 2]):
        run_event(machine, token(number, expert))
    if by == "history":
        machine.reset("history")
    last = run_event(machine, Event(0, ((7,),), 1, 0, "prefill") if by == "prompt" else token(6, 7))
    assert last.victims == (Key(0, 0),)
    assert machine.residents() == {Key(0, 1), Key(0, 2), Key(0, 7)}


# ---------------------------------------------------------------------------------------------- laws


@pytest.mark.rule("XC-EVICT-180", "XC-EVICT-181")
def test_without_halving_and_reset_it_is_lfu_on_decode() -> None:
    still = POLICIES["route-hotness"].setting("still", halve_every=0, reset_at="never")
    for seed in range(60):
        random = Random(seed)
        trace = random_trace(random, Geometry(2, 8, 3), streams=2, passes=20, phases=("decode",))
        slots = Budget(slots=random.randint(3, 14))
        assert replay(trace, still, slots, DS4).counters == replay(trace, "lfu", slots, DS4).counters


@pytest.mark.rule("XC-EVICT-180")
def test_with_router_touch_a_larger_cache_holds_all_that_a_smaller_one_holds() -> None:
    for seed in range(25):
        trace = random_trace(Random(seed), Geometry(2, 7, 3), passes=30, phases=("decode",))
        for small, large in pairwise(range(3, 12)):
            held = (contents(trace, "route-hotness", slots, Settings()) for slots in (small, large))
            assert all(less <= more for less, more in zip(*held, strict=True)), seed


@pytest.mark.rule("XC-RES-006")
def test_with_hits_first_it_need_not() -> None:
    trace = decode_trace([[5, 3], [0, 2, 4], [3, 0, 2], [1, 4]])
    assert not is_included(trace, "route-hotness", 3, DS4)
