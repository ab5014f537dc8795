"""What a prefetch displaces: the log of many seeded runs is legal, and each way to spoil one is caught at its line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache, partial
from random import Random

import attrs
import pytest

from expertcache_spec.errors import ExpertCacheError, InvalidModel, MustWait
from expertcache_spec.eviction import POLICIES, card, make
from expertcache_spec.history import Header, Recorder, Verdict, check, decisions, encode_header, numbered
from expertcache_spec.history.header import decode_log_header
from expertcache_spec.history.schema import PREFETCHES, STATES
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.residency import Residency, Selection, Settings
from expertcache_spec.trace import Event

from .logs import Log, Record, counted, displacing, place, verdict
from .strategies import Case, random_case

ONLINE = [name for name, found in POLICIES.items() if not found.offline]


@attrs.define
class Guessing:
    """Serves a case and guesses at random beside each event; `states` holds the prefetches that have not ended."""

    recorder: Recorder
    random: Random
    states: dict[Key, str] = attrs.field(factory=dict)
    under_way: dict[Key, list[Record]] = attrs.field(factory=dict)

    def enter(self, key: Key, state: str) -> None:
        self.recorder.say("prefetch", key=list(key), state=state)
        self.states[key] = state
        if state in ("adopted", "discarded", "failed"):
            del self.states[key]

    def sweep(self) -> None:
        """What had been guessed and has left unused is discarded."""
        there = self.recorder.machine.residents()
        for key in [key for key, state in self.states.items() if state == "ready" and key not in there]:
            self.enter(key, "discarded")

    def guess(self, selection: Selection) -> None:
        """One guess that may displace, or not, or only some records."""
        machine, random = self.recorder.machine, self.random
        key = Key(random.choice(machine.geometry.routed), random.randrange(machine.geometry.experts))
        stale = set(random.sample(sorted(machine.residents()), len(machine.residents()) * 3 // 4))
        beside, may_go = random.choice([(None, stale.__contains__), (selection, stale.__contains__),
                                        (selection, lambda victim: True)])  # fmt: skip
        runs = self.recorder.prefetch(key, beside, may_go)
        if key in machine.flights and machine.flights[key].origin == "prefetch" and key not in self.under_way:
            self.sweep()
            self.states[key] = "reading"
            self.under_way[key] = runs

    def land(self, key: Key) -> None:
        """The speculative read of the key has ended; now and then it has failed, where nobody waits for it."""
        runs, machine = self.under_way.pop(key), self.recorder.machine
        if self.states[key] == "reading" and self.random.random() < 0.1:
            self.recorder.fail(key)
            self.enter(key, "failed")
            return
        self.recorder.end_reads(runs)
        self.recorder.publish(key)
        there = key in machine.residents()
        self.enter(key, "adopted" if self.states[key] == "late" else "ready" if there else "failed")
        self.sweep()

    def land_all(self) -> None:
        for key in list(self.under_way):
            self.land(key)

    def wave(self, selection: Selection) -> None:
        """One wave of an event, from its selection to its release."""
        for key in selection.joined:
            self.enter(key, "late")
        for key in selection.hits:
            if self.states.get(key) == "ready":
                self.enter(key, "adopted")
        self.sweep()
        self.recorder.load(selection)
        self.sweep()
        for _ in range(self.random.randint(0, 3)):
            self.guess(selection)
        for key in selection.joined:
            self.land(key)
        self.recorder.finish(selection)
        self.sweep()

    def serve(self, event: Event) -> None:
        """All waves of an event; where room is wanted, what is read on speculation lands first."""
        selection = self._select(partial(self.recorder.select, event))
        self.wave(selection)
        while selection.deferred:
            selection = self._select(partial(self.recorder.resume, selection))
            self.wave(selection)
        for key in [key for key in self.under_way if self.random.random() < 0.5]:
            self.land(key)

    def _select(self, ask: Callable[[], Selection]) -> Selection:
        try:
            return ask()
        except MustWait:
            self.land_all()
            return ask()


def log_of(case: Case, policy: str, random: Random) -> Log | None:
    """The log of a case with guesses; None where the machine refuses the case."""
    geometry = case.trace.geometry
    try:
        machine = Residency(geometry, case.budget, make(policy), case.settings)
        run = Guessing(Recorder(machine, random.randint(1, 3), page=1), random)
        for event in case.trace.events:
            run.serve(event)
    except ExpertCacheError:
        return None
    run.land_all()
    run.recorder.end()
    header = Header(geometry, case.budget, case.settings, policy, card(policy).complete({}))
    found: Log = json.loads(json.dumps([encode_header(header), *run.recorder.taken()]))
    return found


def told(found: Log, **header: object) -> Verdict:
    return check(decode_log_header({**found[0], **header}, "log:1"), numbered(found[1:]))


def displaced(found: Log) -> list[int]:
    """Places of the prefetches for which records gave way."""
    return [n for n, record in enumerate(found) if record.get("op") == "prefetch" and "ticket" in record]


def victims_of(found: Log, place_: int) -> list[Key]:
    """Who gave way for the prefetch there."""
    after = place_ + 1
    while found[after]["op"] == "evict":
        after += 1
    return [Key(*record["key"]) for record in found[place_ + 1 : after]]


def logs(seed: str, count: int, policies: Iterable[str]) -> list[tuple[str, Log]]:
    """That many logs of each policy in which some prefetch displaces."""
    found = []
    for policy in policies:
        random, left = Random(f"{seed} {policy}"), count
        while left:
            made = log_of(random_case(random.getrandbits(32)), policy, random)
            if made is not None and displaced(made):
                found.append((policy, made))
                left -= 1
    return found


@cache
def to_spoil() -> tuple[tuple[str, Log], ...]:
    """The logs that are spoiled, each time as a copy."""
    return tuple(logs("spoiled", 3, ["lru", "fifo", "lfu", "arc", "least-stale", "random"]))


def all_are_legal(seed: str, count: int, policies: list[str]) -> Counter[str]:
    """Check the logs with the declared policy and without; how many victims there were, and of which kinds."""
    seen: Counter[str] = Counter()
    for policy, found in logs(seed, count, policies):
        unsized = found[0]["geometry"].get("record_bytes") is None
        verdict_ = told(found)
        assert (verdict_.answer, verdict_.rule) == ("unknown" if unsized else "legal", None), (policy, verdict_)
        assert set(verdict_.undecided) == ({"XC-RES-015"} if unsized else set())
        verdict_ = told(found, policy=None)
        assert (verdict_.answer, verdict_.rule) == ("unknown", None), (policy, verdict_)
        assert "XC-HIST-005" in verdict_.undecided
        for where in displaced(found):
            gone = victims_of(found, where)
            seen["displacing"] += 1
            seen["several"] += len(gone) > 1
            seen["discarded"] += any(record["op"] == "prefetch" and record["state"] == "discarded"
                                     for record in found[where : where + len(gone) + 8])  # fmt: skip
            decided = [key for each in decisions(numbered(found[1:])) for key in each.victims]
        evictions = sum(record.get("op") == "evict" for record in found)
        assert len(decided) <= evictions - sum(len(victims_of(found, where)) for where in displaced(found))
    return seen


@pytest.mark.rule("XC-HIST-003", "XC-HIST-005", "XC-HIST-010", "XC-PREFETCH-008")
def test_the_logs_of_prefetches_that_displace_are_legal_whatever_the_policy() -> None:
    seen = all_are_legal("daily", 2, ONLINE)
    assert seen["displacing"] > 2 * len(ONLINE)
    assert min(seen["several"], seen["discarded"]) > 5


@pytest.mark.nightly
@pytest.mark.rule("XC-HIST-003", "XC-HIST-005", "XC-HIST-010", "XC-PREFETCH-008")
def test_many_logs_of_prefetches_that_displace_are_legal() -> None:
    assert all_are_legal("nightly", 50, ONLINE)["displacing"] > 50 * len(ONLINE)


# ---------------------------------------------------------------------------------------------- spoiled


def spoiled(found: Log, where: int, how: str, random: Random) -> tuple[Log, set[str], int]:
    """A spoiled copy, the rules one of which it breaks, and the line where."""
    copy: Log = json.loads(json.dumps(found))
    model, gone = decode_log_header(found[0], "log:1").geometry, victims_of(found, where)
    executing, line = copy[where]["ticket"], where + 1
    if how == "victim missing":
        copy.pop(where + random.randint(1, len(gone)))
        return copy, {"XC-PREFETCH-008"}, line
    if how == "no ticket":
        del copy[where]["ticket"]
        return copy, {"XC-RES-021"}, line
    if how == "ticket that is over":
        copy[where]["ticket"] = executing + random.choice([-1, 1]) if executing > 1 else executing + 1
        return copy, {"XC-RES-017"}, line
    if how == "key of the event":
        select = next(r for r in copy if r.get("op") in ("select", "resume") and r["ticket"] == executing)
        while select["op"] == "resume":
            select = next(r for r in copy if r.get("ticket") == select["after"] and r["op"] in ("select", "resume"))
        copy[where + 1]["key"] = [select["layer"], select["experts"][0][0]]
        return copy, {"XC-RES-005"}, line + 1
    others = [Key(layer, expert) for layer in model.routed for expert in range(model.experts)]
    other = random.choice([key for key in others if key not in gone])
    if how == "another victim":
        copy[where + 1]["key"] = list(other)
        return copy, {"XC-RES-005", POLICIES[found[0]["policy"]["name"]].rule}, line + 1
    copy.insert(where + len(gone) + 1, {**copy[where + len(gone)], "key": list(other)})
    return copy, {"XC-RES-005", "XC-RES-008"}, line + len(gone) + 1


@pytest.mark.rule("XC-PREFETCH-008", "XC-RES-005", "XC-RES-008", "XC-RES-017", "XC-RES-021")
@pytest.mark.parametrize("how", ["victim missing", "no ticket", "ticket that is over", "key of the event",
                                 "another victim", "a victim more"])  # fmt: skip
def test_each_way_to_spoil_what_a_prefetch_displaces_is_caught_at_its_line(how: str) -> None:
    random, rules, without = Random(how), Counter[str](), 0
    for policy, found in to_spoil():
        for where in displaced(found)[:6]:
            copy, allowed, line = spoiled(found, where, how, random)
            verdict_ = told(counted(copy))
            assert verdict_.answer == "illegal", (policy, where)
            assert (verdict_.rule in allowed, verdict_.line) == (True, line), (policy, where, verdict_)
            rules[str(verdict_.rule)] += 1
            sizes = {*found[0]["geometry"].get("record_bytes", ())}
            if how != "another victim" and len(sizes) < 2:  # without a policy, whoever may go may be the victim
                verdict_ = told(copy, policy=None)
                assert (verdict_.rule in allowed, verdict_.line) == (True, line), (policy, where, verdict_)
                without += 1
    assert rules.total() > 20
    assert (without > 5) == (how != "another victim")
    assert len(rules) > (how in ("another victim", "a victim more"))


@pytest.mark.rule("XC-PREFETCH-008")
@pytest.mark.parametrize("state", [state for state in STATES if state != "reading"])
@pytest.mark.parametrize("home", PREFETCHES)
def test_only_a_read_that_begins_in_a_slot_displaces(state: str, home: str) -> None:
    found = displacing()
    found[0]["prefetch"] = home
    where = place(found, "prefetch")
    found[where]["state"] = state
    told_ = verdict(found)
    assert (told_.line, told_.answer) == (where + 1, "illegal")
    assert told_.rule == ("XC-PREFETCH-007" if home == "staging" and state == "queued" else "XC-HIST-010")


@pytest.mark.rule("XC-PREFETCH-008")
def test_a_prefetch_beside_an_event_that_displaces_nobody_is_legal() -> None:
    recorder = Recorder(Residency(MODEL, Budget(slots=2), make("lru")))
    selection = recorder.select(Event(0, ((0,),)))
    recorder.load(selection)
    runs = recorder.prefetch(Key(0, 1), selection)
    recorder.end_reads(runs)
    recorder.publish(Key(0, 1))
    recorder.say("prefetch", key=[0, 1], state="ready")
    recorder.finish(selection)
    recorder.end()
    found = [encode_header(Header(MODEL, Budget(slots=2), policy="lru")), *recorder.taken()]
    where = place(found, "prefetch", state="reading")
    assert "ticket" not in found[where]
    found[where]["ticket"] = selection.ticket
    assert verdict(found).answer == "legal"


ONE = Geometry(1, 3, 1, (1,))


def renewed() -> tuple[Log, int]:
    """The log of a prefetch that finds the stalest record and makes it current, and where it says so."""
    machine = Residency(ONE, Budget(slots=2), make("least-stale", parameters={"prefetch_renews": True}))
    recorder = Recorder(machine)
    for number, expert in enumerate((0, 1, 2)):
        selection = recorder.select(Event(0, ((expert,),), pass_index=number))
        recorder.load(selection)
        recorder.finish(selection)
        assert not recorder.prefetch(Key(0, 0))
    recorder.end()
    header = Header(ONE, Budget(slots=2), policy="least-stale", parameters={"prefetch_renews": True})
    found = [encode_header(header), *recorder.taken()]
    return found, place(found, "prefetch", 1, state="present")


@pytest.mark.rule("XC-EVICT-202", "XC-HIST-010")
def test_a_prefetch_that_renews_a_record_is_in_the_log_and_what_it_changes_is_legal() -> None:
    found, _ = renewed()
    assert verdict(found).answer == "legal"
    assert [[key.expert for key in each.victims] for each in decisions(numbered(found[1:]))] == [[], [], [1]]
    assert told(found, policy=None).rule is None  # who leaves is then the log's own


@pytest.mark.rule("XC-EVICT-202", "XC-HIST-010", "XC-PREFETCH-007")
@pytest.mark.parametrize(
    "how", ["not said", "of what is not there", "outside the cache", "under a policy that does not"]
)
def test_a_prefetch_that_renews_is_believed_only_where_it_can_be(how: str) -> None:
    found, where = renewed()
    evicts, rule = place(found, "evict"), "XC-EVICT-200"
    if how == "not said":
        del found[where]
        evicts -= 1
    elif how == "of what is not there":
        found[where]["key"], rule = [0, 2], "XC-HIST-010"
    elif how == "outside the cache":
        found[0]["prefetch"], rule = "staging", "XC-PREFETCH-007"
    else:
        found[0]["policy"]["parameters"] = {}
    line = {"XC-EVICT-200": evicts, "XC-HIST-010": where, "XC-PREFETCH-007": place(found, "prefetch")}[rule]
    told_ = verdict(counted(found))
    assert (told_.answer, told_.rule, told_.line) == ("illegal", rule, line + 1)


@pytest.mark.rule("XC-HIST-010")
def test_a_policy_that_renews_nothing_has_no_such_lines() -> None:
    recorder = Recorder(Residency(MODEL, Budget(slots=2), make("least-stale")))
    selection = recorder.select(Event(0, ((0,),)))
    recorder.load(selection)
    assert not recorder.prefetch(Key(0, 0))
    assert all(record["op"] != "prefetch" for record in recorder.taken())


MODEL = Geometry(2, 3, 2, (1, 2))


def two_for_one() -> Log:
    """A record of one byte and one of two leave for a prefetch of one of two."""
    recorder = Recorder(Residency(MODEL, Budget(bytes=4), make("lru")))
    for number, experts in enumerate([(0, 1), (0,), (2,)]):
        selection = recorder.select(Event(number % 2, (experts,), pass_index=number // 2))
        recorder.load(selection)
        if number == 2:
            recorder.end_reads(recorder.prefetch(Key(1, 1), selection))
            recorder.publish(Key(1, 1))
            recorder.say("prefetch", key=[1, 1], state="ready")
        recorder.finish(selection)
    recorder.end()
    return [encode_header(Header(MODEL, Budget(bytes=4), policy="lru")), *recorder.taken()]


@pytest.mark.rule("XC-PREFETCH-008", "XC-HIST-005")
def test_a_large_record_displaces_two_small_ones_with_a_policy_and_without() -> None:
    found = two_for_one()
    where = place(found, "prefetch")
    assert victims_of(found, where) == [Key(0, 1), Key(1, 0)]
    for turned in (False, True):
        if turned:  # which records leave is compared, not in which order they are named
            found[where + 1]["key"], found[where + 2]["key"] = found[where + 2]["key"], found[where + 1]["key"]
        assert verdict(found).answer == "legal"
        assert (told(found, policy=None).answer, told(found, policy=None).rule) == ("unknown", None)


@pytest.mark.rule("XC-PREFETCH-008")
def test_what_a_prefetch_displaces_is_no_eviction_of_the_event_that_executes() -> None:
    found = two_for_one()
    where = place(found, "prefetch")
    for line in found[where + 1 : where + 3]:
        assert [each.victims for each in decisions(numbered(found[1:]))] == [(), (), (Key(0, 0),)]
        line["ticket"] = found[where]["ticket"]  # the log may name the event there too
    assert verdict(found).answer == "legal"
    assert [each.victims for each in decisions(numbered(found[1:]))] == [(), (), (Key(0, 0),)]


def test_what_is_no_key_of_the_model_displaces_nobody() -> None:
    machine = Residency(MODEL, Budget(slots=1), make("lru"), Settings())
    machine.serve(Event(0, ((0,),)))
    for key in (Key(0, 3), Key(2, 0)):
        with pytest.raises(InvalidModel, match="no key of the model"):
            machine.vacate(key, Event(1, ((0,),)), lambda victim: True)
    assert machine.residents() == {Key(0, 0)}
