"""The event log: every log of the machine is legal, what cannot be judged is unknown, and what is no log is refused."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Iterator
from importlib import resources
from itertools import chain, repeat
from random import Random
from typing import Any

import attrs
import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from expertcache_spec.errors import ExpertCacheError
from expertcache_spec.eviction import POLICIES, make
from expertcache_spec.history import (
    OPERATIONS,
    Header,
    InvalidLog,
    Recorder,
    check,
    decisions,
    encode_header,
    json_schema,
    log_of,
    numbered,
    read_log,
)
from expertcache_spec.history.checker import Checker
from expertcache_spec.history.header import decode_log_header
from expertcache_spec.history.reading import MAX_LINE, split_lines
from expertcache_spec.history.schema import OBSERVABLE, check_line
from expertcache_spec.model import Budget, Geometry, Key
from expertcache_spec.replay import Replay
from expertcache_spec.residency import Residency, Settings
from expertcache_spec.trace import Event, Trace

from .logs import MODEL, Log, counted, lines, log, managed, place, staged, verdict
from .recordings import beginning, bigmoe
from .strategies import Case, cases, random_case

ONLINE = [name for name, card in POLICIES.items() if not card.offline]

# ---------------------------------------------------------------------------------------------- legal


def is_legal(case: Case, policy: str, split: int, ahead: int) -> bool:
    """Check that the log of a replay is legal, and says what the replay says; False where there is no such replay."""
    try:
        log_run, run = (Replay(case.trace, policy, case.budget, case.settings) for _ in range(2))
        found = list(log_of(log_run, split=split, page=1, ahead=ahead))
    except ExpertCacheError:
        return False  # refused by the machine: no history
    header = decode_log_header(json.loads(json.dumps(found[0])), "log:1")
    told = check(header, numbered(json.loads(json.dumps(found[1:]))))
    unsized = case.trace.geometry.record_bytes is None
    assert told.answer == ("unknown" if unsized else "legal"), told
    assert set(told.undecided) == ({"XC-RES-015"} if unsized else set())
    assert told.records == len(found) - 2
    undeclared = check(attrs.evolve(header, policy=None), numbered(found[1:]))
    assert undeclared.answer == "unknown", undeclared
    if not ahead:
        steps = [(event, step.hits, sorted(step.victims)) for event, step in zip(run.events, run, strict=True)]
        extracted = [(each.event, each.hits, sorted(each.victims)) for each in decisions(numbered(found[1:]))]
        assert steps == extracted
    return True


@pytest.mark.rule("XC-HIST-005", "XC-HIST-012")
@given(cases(), st.sampled_from(ONLINE), st.integers(1, 4), st.integers(0, 2))
def test_every_log_of_the_machine_is_legal(case: Case, policy: str, split: int, ahead: int) -> None:
    is_legal(case, policy, split, ahead)


def legal_logs(policy: str, count: int, seed: str) -> None:
    """Check that many logs of the policy's replays."""
    random, legal = Random(f"{seed} {policy}"), 0
    while legal < count:
        case = random_case(random.getrandbits(32))
        legal += is_legal(case, policy, random.randint(1, 4), random.randint(0, 2))


@pytest.mark.rule("XC-HIST-005", "XC-HIST-012")
@pytest.mark.parametrize("policy", ONLINE)
def test_the_logs_of_every_policy_are_legal(policy: str) -> None:
    legal_logs(policy, 3, "daily")


@pytest.mark.nightly
@pytest.mark.rule("XC-HIST-005", "XC-HIST-012")
@pytest.mark.parametrize("policy", ONLINE)
def test_many_logs_of_every_policy_are_legal(policy: str) -> None:
    legal_logs(policy, 100, "nightly")


@pytest.mark.rule("XC-HIST-010", "XC-RES-016", "XC-RES-020")
def test_a_log_with_seeds_pins_prefetches_failures_and_resets_is_legal() -> None:
    found = managed()
    assert verdict(found).answer == "legal"
    assert {record["op"] for record in found[1:]} >= {"seed", "pin", "unpin", "prefetch", "fail", "resize", "reset"}


@pytest.mark.rule("XC-HIST-005")
def test_a_miss_that_evicts_two_records_is_followed_without_a_policy() -> None:
    model = Geometry(2, 3, 2, (1, 2))
    recorder = Recorder(Residency(model, Budget(bytes=2), make("lru")))
    for layer, experts in ((0, (0, 1)), (1, (0,))):
        selection = recorder.select(Event(layer, (experts,)))
        recorder.load(selection)
        recorder.finish(selection)
    recorder.end()
    found = [encode_header(Header(model, Budget(bytes=2))), *recorder.taken()]
    assert sum(record.get("op") == "evict" for record in found) == 2
    assert (verdict(found).answer, verdict(found).rule) == ("unknown", None)


@pytest.mark.rule("XC-HIST-012")
def test_the_log_of_a_real_trace_is_legal_and_says_what_the_replay_says() -> None:
    trace = beginning(bigmoe("qwen"), 2)
    settings = Settings(room="trim")
    found = list(log_of(Replay(trace, "lru", Budget(bytes=10**9), settings), split=2, page=4096))
    told = check(
        decode_log_header(json.loads(json.dumps(found[0])), "log"), numbered(json.loads(json.dumps(found[1:])))
    )
    assert told.answer == "legal", told
    run = Replay(trace, "lru", Budget(bytes=10**9), settings)
    for decided, (event, step) in zip(decisions(numbered(found[1:])), zip(run.events, run, strict=True), strict=True):
        assert (decided.event.keys, decided.hits, decided.victims) == (event.keys, step.hits, step.victims)


@pytest.mark.rule("XC-HIST-005")
def test_weights_and_scores_go_into_the_log_and_come_out_of_it() -> None:
    model = Geometry(1, 3, 2, (1,))
    events = tuple(
        Event(0, (ids,), pass_index=n, weights=((0.75, 0.25),), scores=((0.5, 0.25, 0.25),))
        for n, ids in enumerate([(0, 1), (1, 2), (2, 0)])
    )
    found = json.loads(json.dumps(list(log_of(Replay(Trace(model, events), "lru", Budget(slots=2))))))
    assert verdict(found).answer == "legal"
    assert [each.event for each in decisions(numbered(found[1:]))] == list(events)
    found[1]["weights"] = [[0.75, 0.25, 0.0]]
    assert (verdict(found).rule, verdict(found).line) == ("XC-TRACE-004", 2)


@pytest.mark.rule("XC-HIST-010", "XC-HIST-011")
def test_a_queued_prefetch_that_a_demand_overtakes_is_discarded() -> None:
    found = log()
    ends = [("select", 2, "queued"), ("combine", 2, "discarded")]
    for target, nth, state in ends:
        found.insert(place(found, target, nth), {"op": "prefetch", "key": [0, 2], "state": state, "thread": 0})
    assert verdict(counted(found)).answer == "legal"


@pytest.mark.rule("XC-HIST-011")
def test_a_prefetch_may_lie_ready_and_unused_when_the_log_ends() -> None:
    recorder = Recorder(Residency(MODEL, Budget(slots=4), make("lru")))
    recorder.say("prefetch", key=[0, 3], state="queued")
    recorder.end_reads(recorder.prefetch(Key(0, 3)))
    recorder.publish(Key(0, 3))
    recorder.say("prefetch", key=[0, 3], state="ready")
    recorder.end()
    header = encode_header(Header(MODEL, Budget(slots=4), policy="lru"))
    assert verdict([header, *recorder.taken()]).answer == "legal"


@pytest.mark.rule("XC-HIST-006")
def test_the_chunks_of_a_record_may_begin_in_any_order() -> None:
    found = log()
    for op in ("read_start", "read_end"):
        first, second = (found[place(found, op, read=read)] for read in (0, 1))
        first["offset"], second["offset"] = second["offset"], first["offset"]
    assert verdict(found).answer == "legal"


@pytest.mark.rule("XC-HIST-007", "XC-RES-022", "XC-RES-023")
@pytest.mark.parametrize("end", [{"op": "reset", "scope": "contents"}, {"op": "rebind", "fingerprint": "other"}])
def test_what_ends_the_contents_frees_the_slots(end: dict[str, Any]) -> None:
    first = log(slots=2, ahead=0)
    second = place(first, "select", 1)
    found = [*first[:second], {"clock": 0, "thread": 0, **end}, *first[second:]]
    found = [record for record in found if not (record.get("op") == "evict" and record.get("ticket") == 2)]
    del found[place(found, "select", 2) : -1]
    assert verdict(counted(found)).answer == "legal"


@pytest.mark.rule("XC-RES-013", "XC-RES-022")
def test_no_wave_is_owed_after_a_reset_of_the_contents() -> None:
    found = log(slots=1, overflow="waves", ahead=0)
    found[place(found, "resume") : -1] = [{"op": "reset", "clock": 0, "thread": 0, "scope": "contents"}]
    assert verdict(counted(found)).answer == "legal"


@pytest.mark.rule("XC-RES-013")
def test_an_event_is_told_when_its_last_wave_has_ended_or_it_is_given_up() -> None:
    found = log(slots=1, overflow="waves", ahead=0)
    assert next(decisions(numbered(found[1:]))).victims == (Key(0, 0),)
    found[place(found, "release")]["op"] = "abandon"
    rest = numbered(found[1:])
    assert next(decisions(rest)).victims == ()
    assert next(rest)[0] < len(found)


@pytest.mark.rule("XC-RES-025")
@pytest.mark.parametrize("policy", ["lru", None])
def test_a_read_that_two_events_wait_for_trims_for_the_one_that_it_completes(policy: str | None) -> None:
    settings = Settings(room="trim")
    recorder = Recorder(Residency(MODEL, Budget(slots=5), make("lru"), settings))
    before = recorder.select(Event(0, ((4, 5),), 2))
    recorder.load(before)
    recorder.finish(before)
    one, two = recorder.select(Event(0, ((0, 1),))), recorder.select(Event(0, ((1, 2),), 1))
    recorder.end_reads(recorder.begin_reads([*one.reads, *two.reads]))
    recorder.machine.pin(Key(0, 4))
    recorder.say("pin", key=[0, 4])
    recorder.resize(Budget(slots=3))
    recorder.machine.unpin(Key(0, 4))
    recorder.say("unpin", key=[0, 4])
    for key in (Key(0, 0), Key(0, 1), Key(0, 2)):
        recorder.publish(key)
    for selection in (one, two):
        recorder.finish(selection)
    recorder.end()
    found = [encode_header(Header(MODEL, Budget(slots=5), settings, policy)), *recorder.taken()]
    assert verdict(found).answer == ("legal" if policy else "unknown")
    completed = place(found, "publish", key=[0, 1])
    assert found.pop(completed + 1)["op"] == "evict"
    told = verdict(counted(found))
    assert (told.rule, told.line) == ("XC-RES-025", completed + 1)


@pytest.mark.rule("XC-RES-011", "XC-RES-020")
@pytest.mark.parametrize("policy", ["lru", None])
def test_a_seed_that_a_shrink_left_no_room_leaves_when_it_is_published(policy: str | None) -> None:
    recorder = Recorder(Residency(MODEL, Budget(slots=3), make("lru")))
    selection = recorder.select(Event(0, ((0, 1),)))
    recorder.load(selection)
    recorder.machine.seed([Key(0, 3)], [0])
    recorder.say("seed", key=[0, 3], priority=0, how="read")
    runs = recorder.begin_reads([Key(0, 3)])
    recorder.resize(Budget(slots=2))
    recorder.end_reads(runs)
    recorder.publish(Key(0, 3))
    recorder.finish(selection)
    recorder.end()
    found = [encode_header(Header(MODEL, Budget(slots=3), policy=policy)), *recorder.taken()]
    assert verdict(found).answer == ("legal" if policy else "unknown")
    del found[place(found, "evict", key=[0, 3])]
    told = verdict(counted(found))
    assert (told.rule, told.line) == ("XC-RES-011", place(found, "publish", key=[0, 3]) + 1)


# ---------------------------------------------------------------------------------------------- events given up


def given_up(slots: int, *, reads: str) -> Log:
    """A log of one event that is abandoned; its reads have `ended`, have `failed`, or are still `going`."""
    machine = Residency(MODEL, Budget(slots=slots), make("lru"))
    recorder = Recorder(machine)
    selection = recorder.select(Event(0, ((0, 1),)))
    started = recorder.begin_reads(selection.reads)
    started += recorder.begin_reads(selection.bypassed, ticket=selection.ticket)
    if reads == "ended":
        recorder.end_reads(started)
        for key in selection.reads:
            recorder.publish(key)
    elif reads == "failed":
        for key in selection.reads:
            recorder.fail(key)
        for key in selection.bypassed:
            recorder.say("fail", key=list(key), ticket=selection.ticket)
    recorder.say("abandon", ticket=selection.ticket)
    recorder.end()
    return [encode_header(Header(MODEL, Budget(slots=slots), policy="lru")), *recorder.taken()]


@pytest.mark.rule("XC-RES-016", "XC-RES-017")
@pytest.mark.parametrize("slots", [2, 0])
@pytest.mark.parametrize("reads", ["ended", "failed"])
def test_an_event_may_be_given_up_before_its_work_once_its_reads_have_ended(slots: int, reads: str) -> None:
    found = given_up(slots, reads=reads)
    assert verdict(found).answer == "legal"
    assert [decided.event.keys for decided in decisions(numbered(found[1:]))] == [(Key(0, 0), Key(0, 1))]


@pytest.mark.rule("XC-RES-016", "XC-HIST-009")
def test_an_event_whose_every_read_has_failed_has_nothing_to_combine() -> None:
    found = given_up(2, reads="failed")
    found[place(found, "abandon")]["op"] = "release"
    assert verdict(found).answer == "legal"


@pytest.mark.rule("XC-RES-013", "XC-HIST-011")
def test_no_wave_of_an_event_that_is_given_up_is_owed() -> None:
    found = log(slots=1, overflow="waves", ahead=0)
    found[place(found, "release")]["op"] = "abandon"
    del found[place(found, "resume") : -1]
    assert verdict(counted(found)).answer == "legal"


@pytest.mark.rule("XC-RES-017")
@pytest.mark.parametrize("slots", [2, 0])
def test_an_event_that_is_given_up_holds_its_lease_until_its_reads_have_ended(slots: int) -> None:
    assert verdict(given_up(slots, reads="going")).rule == "XC-RES-017"


@pytest.mark.rule("XC-RES-016")
def test_only_a_read_for_one_event_alone_fails_under_its_ticket() -> None:
    found = given_up(2, reads="failed")
    found[place(found, "fail")]["ticket"] = found[place(found, "select")]["ticket"]
    assert verdict(found).rule == "XC-RES-016"


# ---------------------------------------------------------------------------------------------- staging


@pytest.mark.rule("XC-HIST-010")
@pytest.mark.parametrize(
    ("states", "taken", "rule"),
    [
        (("reading", "ready"), "adopted", None),
        (("reading",), "late", None),
        (("reading", "ready", "discarded"), "", None),
        (("reading", "ready", "discarded"), "adopted", "XC-HIST-010"),
        (("reading", "early"), "adopted", "XC-HIST-010"),
        (("ready",), "adopted", "XC-HIST-006"),
        ((), "adopted", "XC-HIST-010"),
    ],
)
def test_a_prefetch_outside_the_cache_changes_no_residency_and_gives_its_bytes_once(
    states: tuple[str, ...], taken: str, rule: str | None
) -> None:
    told = verdict(staged(*states, taken=taken))
    assert (told.rule, told.answer) == (rule, "illegal" if rule else "legal"), told


# ---------------------------------------------------------------------------------------------- unknown


@pytest.mark.rule("XC-HIST-012")
@pytest.mark.parametrize(
    ("change", "undecided"),
    [
        ({"policy": None}, {"XC-HIST-005"}),
        ({"policy": {"name": "belady", "parameters": {}}}, {"XC-HIST-005"}),
        ({"policy": {"name": "x" * 5000, "parameters": {}}}, {"XC-HIST-005"}),
        ({"policy": {"name": "lru", "parameters": {"no": 1}}}, {"XC-HIST-005"}),
        ({"policy": {"name": "lru", "parameters": {"no": {"a": []}}}}, {"XC-HIST-005"}),
        ({"observes": ["reads", "slots", "computes"]}, {"XC-HIST-009"}),
        ({"observes": ["slots", "computes", "combines"]}, {"XC-HIST-006", "XC-RES-015", "XC-FANOUT-005"}),
        ({"observes": []}, {"XC-HIST-006", "XC-HIST-007", "XC-HIST-008", "XC-HIST-009", "XC-RES-015", "XC-FANOUT-005"}),
        ({"geometry": {"layers": 2, "experts": 6, "top_k": 2}}, {"XC-RES-015"}),
    ],
)  # fmt: skip
def test_what_a_log_does_not_say_leaves_its_rules_undecided(change: dict[str, Any], undecided: set[str]) -> None:
    found = log()
    found[0].update(change)
    told = verdict(found)
    assert (told.answer, set(told.undecided)) == ("unknown", undecided), told
    assert all(told.undecided.values())


@pytest.mark.rule("XC-HIST-002")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"budget": {}}, 'Cure: write it as {"slots": N}'),
        ({"budget": {"slots": "4"}}, "header field budget has another type"),
        ({"observes": ["sums"]}, "header field observes has another type"),
        ({"policy": "lru"}, "header field policy has another type"),
        ({"prefetch": 5}, "header field prefetch has another type"),
        ({"settings": {"scope": 1}}, "header field settings has another type"),
        ({"name": 5}, "header field name has another type"),
        ({"geometry": {"layers": 10**9, "experts": 6, "top_k": 2}}, "from 1 to 65536"),
    ],
)
def test_a_wrong_header_names_the_field_and_how_to_write_it(change: dict[str, Any], said: str) -> None:
    found = log()
    found[0].update(change)
    with pytest.raises(InvalidLog) as refusal:
        verdict(found)
    assert said in str(refusal.value)
    assert "--slots" not in str(refusal.value)


@pytest.mark.rule("XC-HIST-012")
def test_a_log_that_says_nothing_proves_nothing() -> None:
    found = log()
    told = verdict(counted([found[0], found[-1]]))
    assert (told.answer, told.records, set(told.undecided)) == ("unknown", 0, {"XC-HIST-012"})


@pytest.mark.rule("XC-HIST-012")
@pytest.mark.parametrize("kind", OBSERVABLE)
def test_a_log_without_lines_of_a_kind_is_judged_by_the_others(kind: str) -> None:
    named = {
        "reads": ("read_start", "read_end"),
        "computes": ("compute_start", "compute_end"),
        "combines": ("combine",),
    }
    found = [record for record in log() if record.get("op") not in named.get(kind, ())]
    found = [{name: value for name, value in record.items() if (name, kind) != ("slot", "slots")} for record in found]
    found[0]["observes"] = [each for each in OBSERVABLE if each != kind and (kind, each) != ("reads", "slots")]
    assert verdict(counted(found)).answer == "unknown"
    found[place(found, "evict")]["key"] = [1, 3]
    assert verdict(found).rule == "XC-EVICT-020"


@pytest.mark.rule("XC-HIST-012")
def test_legal_is_said_only_after_the_last_line() -> None:
    found = log()
    assert verdict(found[:-1]).answer == "illegal"
    taken: list[int] = []

    def watch(each: Any) -> Iterator[Any]:
        for line, record in each:
            taken.append(line)
            yield line, record

    told = check(decode_log_header(found[0], "log"), numbered(found[1:]), watch)
    assert taken == list(range(2, len(found) + 1))
    assert told.records == len(found) - 2


# ---------------------------------------------------------------------------------------------- schema


@pytest.mark.rule("XC-HIST-002")
def test_the_schema_that_ships_is_the_one_of_the_table() -> None:
    file = resources.files("expertcache_spec.history").joinpath("eventlog-1.schema.json")
    assert json.loads(file.read_text(encoding="utf-8")) == json.loads(json.dumps(json_schema()))
    jsonschema.Draft202012Validator.check_schema(json_schema())


VALIDATOR = jsonschema.Draft202012Validator(json_schema())


@pytest.mark.rule("XC-HIST-002")
@pytest.mark.parametrize("found", [log(), log(room="retain"), log(slots=1, overflow="waves", ahead=0), managed()])
def test_every_line_that_is_written_fits_the_schema(found: Log) -> None:
    seen = {}
    for record in found:
        shape = json.dumps([record.get("op"), sorted(record)])
        if shape not in seen:
            seen[shape] = record
            VALIDATOR.validate(record)


values = st.sampled_from(
    [0, 7, -1, 2**63 - 1, 2**63, True, None, "read", "x", [], [0], [0, 1], [[0, 1]], [[]], [[0], []], {}]
)


@pytest.mark.rule("XC-HIST-002")
@given(st.sampled_from(list(OPERATIONS)), st.data())
def test_the_reader_and_the_schema_accept_the_same_lines(op: str, data: st.DataObject) -> None:
    names = ["clock", "thread", *OPERATIONS[op].required, *OPERATIONS[op].optional, "other"]
    good = {"key": [0, 1], "keys": [[0, 1]], "experts": [[0, 1]], "weights": [[0.5, 1]], "scores": [[0]],
            "phase": "decode", "how": "read", "state": "ready",
            "scope": "history", "fingerprint": "x"}  # fmt: skip
    record: dict[str, Any] = {"op": op}
    for name in names:
        if data.draw(st.integers(0, 9)) and name != "other":
            record[name] = good.get(name, 3) if data.draw(st.integers(0, 4)) else data.draw(values)
        elif name == "other" and not data.draw(st.integers(0, 9)):
            record[name] = 1
    try:
        check_line(record, "here")
        accepted = True
    except InvalidLog:
        accepted = False
    assert accepted == VALIDATOR.is_valid(record)


# ---------------------------------------------------------------------------------------------- hostile


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    """The data in pieces of that size."""
    return (data[start : start + size] for start in range(0, len(data), size))


def read(data: bytes, size: int = 1 << 16) -> str:
    """The checker's answer to the bytes of a log."""
    header, found = read_log(pieces(data, size), "run.jsonl")
    return check(header, found).answer


@pytest.mark.rule("XC-HIST-002")
@pytest.mark.parametrize("size", [1, 7, 4096])
def test_a_log_is_read_alike_in_pieces_of_any_size(size: int) -> None:
    data = lines(log())
    header, found = read_log(pieces(data, size), "log")
    assert [record for _, record in found] == log()[1:]
    assert encode_header(header) == log()[0]


GOOD = lines(log())
HEAD = GOOD[: GOOD.index(b"\n") + 1]
LINE = b'{"op":"pin","clock":0,"thread":0,"key":[0,0]}\n'


@pytest.mark.rule("XC-HIST-002")
@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "run.jsonl: the log is empty"),
        (GOOD[:-1], r"run.jsonl:225: the last line has no end.*cut off"),
        (GOOD[:-30], r"run.jsonl:225: the last line has no end"),
        (GOOD[: GOOD.rindex(b"\n", 0, -1) + 1], "run.jsonl:224: no end line.*cut off"),
        (HEAD, "run.jsonl:1: no end line"),
        (GOOD + LINE, "run.jsonl:226: a line after the end"),
        (GOOD.replace(b'"records":223', b'"records":222'), "run.jsonl:225: the end counts 222 lines, 223 were read"),
        (b"\x7fELF\x02\x01\x00\xff\xfe\n", "run.jsonl:1: not UTF-8"),
        (HEAD + b"\0\0\0\n", "run.jsonl:2: not strict JSON"),
        (HEAD + b"\xff\n", "run.jsonl:2: not UTF-8 at byte 0"),
        (HEAD + b"\n", "run.jsonl:2: not strict JSON"),
        (HEAD + b"[" * 100_000 + b"\n", "run.jsonl:2: nested too deeply"),
        (HEAD + b"[]\n", "run.jsonl:2: not an object"),
        (HEAD + b'{"op":"steal"}\n', "run.jsonl:2: operation 'steal'.*one of select"),
        (HEAD + b'{"op":["pin"]}\n', "run.jsonl:2: operation"),
        (HEAD + b'{"op":"pin","op":"pin"}\n', "run.jsonl:2: not strict JSON: a field stands twice"),
        (HEAD + LINE.replace(b"0,0]", b"NaN,0]"), "run.jsonl:2: not strict JSON: NaN"),
        (HEAD + LINE.replace(b"0,0]", b"-1,0]"), r"run.jsonl:2: pin: key is \[-1, 0\]"),
        (HEAD + LINE.replace(b"0,0]", b"0.5,0]"), "run.jsonl:2: pin: key is"),
        (HEAD + LINE.replace(b"0,0]", b"9" * 5000 + b",0]"), "run.jsonl:2: not strict JSON"),
        (HEAD + LINE.replace(b"0,0]", b"9" * 50 + b",0]"), "run.jsonl:2: pin: key is"),
        (HEAD + LINE.replace(b'"key"', b'"kay"'), "run.jsonl:2: pin lacks key.*fields of pin"),
        (HEAD + LINE.replace(b'"key"', b'"extra":1,"key"'), "run.jsonl:2: pin has unknown extra"),
        (LINE, "run.jsonl:1: not an expertcache log"),
        (b"[]\n", "run.jsonl:1: not an expertcache log"),
        (HEAD.replace(b'"version":1', b'"version":2'), "run.jsonl:1: log version 2"),
        (HEAD.replace(b'"policy"', b'"polity"'), "run.jsonl:1: the header lacks or does not know policy, polity"),
        (HEAD.replace(b'"slots":5', b'"slots":-5'), "run.jsonl:1: a header that describes no cache"),
        (HEAD.replace(b'"slots":5', b'"slats":5'), "run.jsonl:1: a header that describes no cache"),
        (HEAD.replace(b'"slots":5', b'"slots":"5"'), "run.jsonl:1: header field budget has another type"),
        (HEAD.replace(b'"layers":2', b'"layers":0'), "run.jsonl:1: a header that describes no cache"),
        (HEAD.replace(b'"reserve"', b'"borrow"'), "run.jsonl:1: a header that describes no cache: room 'borrow'"),
        (HEAD.replace(b'"reads"', b'"seconds"'), "run.jsonl:1: header field observes has another type"),
        (HEAD.replace(b'"reads"', b"[1]"), "run.jsonl:1: header field observes has another type"),
    ],
)  # fmt: skip
def test_what_is_no_log_is_refused_with_its_line_and_a_cure(data: bytes, said: str) -> None:
    with pytest.raises(InvalidLog, match=f"(?s){said}") as caught:
        read(data)
    assert caught.value.cure
    assert len(str(caught.value)) < 2000


@pytest.mark.rule("XC-HIST-002")
def test_a_cut_anywhere_is_never_legal() -> None:
    for end in Random(1).sample(range(len(GOOD)), 60):
        with pytest.raises(InvalidLog):
            read(GOOD[:end])


@pytest.mark.rule("XC-HIST-002")
def test_an_endless_line_is_refused_in_bounded_memory() -> None:
    endless = chain([HEAD], repeat(b"x" * (1 << 20)))
    tracemalloc.start()
    with pytest.raises(InvalidLog, match=f"run.jsonl:2: no end of line within {MAX_LINE} bytes"):
        for _ in read_log(endless, "run.jsonl")[1]:
            pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * MAX_LINE


@pytest.mark.rule("XC-HIST-002")
@given(st.lists(st.binary(max_size=6)), st.integers(1, 6))
def test_lines_are_split_as_python_splits_them(parts: list[bytes], longest: int) -> None:
    data = b"".join(parts)
    expected = data.split(b"\n")
    try:
        found = list(split_lines(parts, "log", longest))
    except InvalidLog:
        assert not data or expected[-1] or max(map(len, expected)) > longest
    else:
        assert found == expected[:-1]
        assert max(map(len, found)) <= longest


@pytest.mark.rule("XC-HIST-002")
@given(st.integers(1, 222), st.data())
def test_a_line_with_strange_values_ends_in_a_verdict_or_an_error_and_in_nothing_else(
    at: int, data: st.DataObject
) -> None:
    found = log()
    record = found[at]
    name = data.draw(st.sampled_from([name for name in record if name not in ("op", "clock", "thread")]))
    record[name] = data.draw(st.sampled_from([0, 1, 3, 2**40, 2**63 - 1, "hit", [0, 1], [1, 5], [[0, 1]], [[5]], []]))
    try:
        header, rest = read_log([lines(found)], "log")
        told: str = check(header, rest).answer
    except InvalidLog as error:
        told = error.where
    assert told in ("legal", "illegal", f"log:{at + 1}")


@pytest.mark.nightly
@pytest.mark.rule("XC-HIST-002")
def test_two_lines_changed_or_moved_end_in_a_verdict_or_an_error_and_in_nothing_else() -> None:
    random = Random(3)
    waves = log(slots=1, overflow="waves", ahead=0)
    answers = set()
    for _ in range(3000):
        found = json.loads(json.dumps(random.choice([log(), managed(), log(room="retain"), waves])))
        found[0]["policy"] = random.choice([None, found[0]["policy"]])
        for _ in range(random.randint(1, 3)):
            disturb(found, random)
        answers.add(verdict(counted(found)).answer)
    assert answers == {"legal", "illegal", "unknown"}


def disturb(found: Log, random: Random) -> None:
    """Repeat, drop or move a line, or give it values of another."""
    one, two = (random.randrange(1, len(found) - 1) for _ in range(2))
    kind = random.randrange(4)
    if kind == 0:
        found.insert(two, dict(found[one]))
    elif kind == 1:
        found.pop(one)
    elif kind == 2:
        found.insert(two, found.pop(one))
    else:
        found[one].update({name: value for name, value in found[two].items() if name in found[one] and name != "op"})


# ---------------------------------------------------------------------------------------------- linear


def prompts(streams: int, tokens: int) -> Iterator[dict[str, Any]]:
    """The lines of as many streams, one after the other, each a prompt of that many tokens and no more."""
    recorder = Recorder(Residency(Geometry(1, 4, 2, (1,)), Budget(slots=4), make("lru")))
    for stream in range(streams):
        selection = recorder.select(Event(0, tuple((n % 3, 3) for n in range(tokens)), stream, phase="prefill"))
        recorder.load(selection)
        recorder.finish(selection)
        yield from recorder.taken()


@pytest.mark.rule("XC-HIST-012", "XC-TRACE-002")
def test_what_is_kept_of_a_stream_is_small_whatever_it_asked_for() -> None:
    checker = Checker(Header(Geometry(1, 4, 2, (1,)), Budget(slots=4), policy="lru"))
    tracemalloc.start()
    for line, record in numbered(prompts(100, 50)):
        checker.feed(line, record)
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert checker.trace.events == 100
    assert kept < 100 * 400


@pytest.mark.nightly
@pytest.mark.rule("XC-HIST-012")
def test_time_a_line_does_not_grow_with_the_log_and_memory_stays() -> None:
    costs, peaks = [], []
    for passes in (4, 32):
        trace = beginning(bigmoe("qwen"), passes)
        found = list(log_of(Replay(trace, "lru", Budget(bytes=10**9), Settings(room="trim")), split=4, page=4096))
        header = decode_log_header(json.loads(json.dumps(found[0])), "log")
        tracemalloc.start()
        begun = time.process_time()
        assert check(header, numbered(found[1:])).answer == "legal"
        costs.append((time.process_time() - begun) / len(found))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert costs[1] < 1.5 * costs[0]
    assert peaks[1] < 2 * peaks[0] + (1 << 20)
