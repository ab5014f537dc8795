"""Guesses that displace, on a runtime with a log: whatever the schedule, who gave way is in it, and it is legal."""

from __future__ import annotations

import errno
from collections import Counter
from typing import Any

import attrs
import pytest

from expertcache_reference.reader import ReadFailed
from expertcache_reference.runtime import Ahead, Runtime, RuntimeClosed
from expertcache_reference.system import this_machine
from expertcache_reference.system.seam import Machine
from expertcache_reference.system.simulated import Faults, explore, simulated
from expertcache_spec.errors import InvalidModel, WrongState
from expertcache_spec.model import Budget, Key
from expertcache_spec.prefetch import Prefetch
from expertcache_spec.residency import Settings
from expertcache_spec.trace import Event

from .runtime_programs import Act, Program, assert_clean, assert_legal, assert_sound, consume, event, simulation, store

TWO = store(layers=2, experts=6)
MIXED = store(layers=2, experts=6, parts=[{"gate": 64, "down": 32}, {"gate": 128, "up": 10, "down": 64}])
ASKED = [(0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 1), (0, 2), (2, 1)]


def _looking(number: int, experts: tuple[int, int]) -> Event:
    """An event that sees one record which the next will ask for, and one more."""
    named = {*ASKED[(number + 1) % len(ASKED)][:1], (number * number) % 6}
    scores = tuple(2.0 if expert in named else 1.0 / (1 + expert) for expert in range(6))
    return attrs.evolve(event(number % 2, *experts, stream=7, number=number // 2), lookahead=((scores,),))


def _guessing(displace: str, tries: int = 3) -> Act:
    """A stream of its own whose gates name two experts of the next layer, rightly or wrongly."""
    prefetch = Prefetch("gate-top-k", home="slot", displace=displace, idle=1)  # type: ignore[arg-type]

    def act(runtime: Runtime) -> None:
        ahead = Ahead(runtime, prefetch)
        for number, experts in enumerate(ASKED):
            for _ in range(tries):
                try:
                    with ahead.serve(_looking(number, experts)) as work:
                        consume(work, {})
                    break
                except ReadFailed:
                    continue
        assert ahead.counts.broken() == []

    return act


def _resize(slots: int) -> Act:
    return lambda runtime: runtime.resize(Budget(slots=slots))


STREAM = tuple(event(at % 2, *rows, number=at // 2) for at, rows in enumerate([(4, 5), (5, 0), (1, 4), (0, 5)]))


def _closing(runtime: Runtime) -> None:
    """Close it when some events have been served."""
    for each in STREAM:
        with runtime.serve(each) as work:
            consume(work, {})
    runtime.close()


PROGRAMS = {
    "any record gives way": Program(TWO, Budget(slots=5), streams=(STREAM,), others=((_guessing("any"),),)),
    "stale records give way": Program(TWO, Budget(slots=6), streams=(STREAM,), others=((_guessing("stale"),),)),
    "two that guess": Program(TWO, Budget(slots=6), others=((_guessing("any"),), (lambda r: r.prefetch(Key(1, 5)),))),
    "records of two sizes, in bytes": Program(MIXED, Budget(bytes=3 * 298), others=((_guessing("any"),),)),
    "a quota a layer": Program(TWO, Budget(slots=6), Settings(scope="layer"), others=((_guessing("any"),),)),
    "room trim": Program(TWO, Budget(slots=4), Settings(room="trim"), streams=(STREAM,), others=((_guessing("any"),),)),
    "room retain": Program(TWO, Budget(slots=4), Settings(room="retain"), others=((_guessing("any"),),)),
    "resized meanwhile": Program(
        TWO, Budget(slots=6), others=((_guessing("any"),), tuple(_resize(slots) for slots in (3, 6, 4, 5))), loose=True,
    ),
    "closed meanwhile": Program(TWO, Budget(slots=5), others=((_guessing("any"),), (_closing,))),
}  # fmt: skip


def _seen(lines: list[dict[str, Any]]) -> Counter[str]:
    """How often a guess displaced, and what it displaced."""
    seen: Counter[str] = Counter()
    for at, line in enumerate(lines):
        if line.get("op") == "prefetch" and "ticket" in line:
            after = at + 1
            while lines[after]["op"] == "evict":
                after += 1
            seen["displacing"] += 1
            seen["several"] += after > at + 2
            seen["unused"] += lines[after].get("state") == "discarded"
            assert after > at + 1
    return seen


def _explored(name: str, schedules: int, seed: int) -> Counter[str]:
    found, seen = PROGRAMS[name], Counter[str]()

    def run(machine: Machine) -> None:
        value = found(machine)
        assert_clean(value, errors="closed" in name or "resized" in name)
        seen.update(_seen(value["lines"]))

    explored = explore(run, simulation(found.found), schedules=schedules, seed=seed)
    explored.check()
    assert explored.schedules == schedules
    return seen


@pytest.mark.rule("XC-PREFETCH-008", "XC-HIST-003", "XC-HIST-010", "XC-HIST-011")
@pytest.mark.parametrize("name", PROGRAMS)
def test_whatever_the_schedule_the_log_says_who_gave_way_and_is_legal(name: str) -> None:
    seen = _explored(name, 8, seed=0)
    assert seen["displacing"]
    assert seen["several"] or "sizes" not in name
    assert seen["unused"] or name != "any record gives way"


@pytest.mark.nightly
@pytest.mark.rule("XC-PREFETCH-008", "XC-HIST-003", "XC-HIST-010", "XC-HIST-011")
@pytest.mark.parametrize("name", PROGRAMS)
def test_whatever_of_many_schedules_the_log_says_who_gave_way_and_is_legal(name: str) -> None:
    assert _explored(name, 300, seed=1)["displacing"] > 100


@pytest.mark.rule("XC-RES-016", "XC-PREFETCH-008")
@pytest.mark.parametrize("nth", range(0, 40, 3))
def test_a_read_that_fails_after_records_gave_way_to_it_leaves_a_legal_log(nth: int) -> None:
    found = attrs.evolve(PROGRAMS["any record gives way"], streams=())
    with simulated(simulation(TWO, faults=Faults(errors={nth: errno.EIO}))) as machine:
        value = found(machine)
    assert_clean(value, errors=True)
    assert _seen(value["lines"])["displacing"]


@pytest.mark.rule("XC-PREFETCH-008")
@pytest.mark.parametrize("displace", ["any", "stale"])
def test_on_a_real_machine_too_the_log_is_legal(tmp_path: Any, displace: str) -> None:
    found, lines = store(layers=2, experts=6, folder=tmp_path).write(), list[dict[str, Any]]()
    with Runtime(found, Budget(slots=5), workers=3, machine=this_machine(), log=lines.append) as runtime:
        _guessing(displace)(runtime)
        runtime.settle()
        assert_sound(runtime, Budget(slots=5))
    assert_legal(lines)
    assert _seen(lines)["displacing"]


def test_nobody_gives_way_beside_an_event_that_is_over_or_to_what_is_no_key() -> None:
    lines: list[dict[str, Any]] = []
    with simulated(simulation(TWO)) as machine:
        with Runtime(TWO, Budget(slots=2), machine=machine, log=lines.append) as runtime:
            with runtime.serve(event(0, 0, 1)) as work:
                consume(work, {})
            ticket = work.wave.ticket
            with pytest.raises(WrongState, match="no event executes"):
                runtime.speculation.displace(Key(1, 2), ticket, lambda key: True)
            with runtime.serve(event(1, 3)) as work:
                consume(work, {})
                with pytest.raises(InvalidModel, match="no key of the model"):
                    runtime.speculation.displace(Key(1, 9), work.wave.ticket, lambda key: True)
                assert runtime.speculation.displace(Key(1, 2), work.wave.ticket, lambda key: False)[0] == "refused"
            assert_sound(runtime, Budget(slots=2))
        with pytest.raises(RuntimeClosed):
            runtime.speculation.displace(Key(1, 2), ticket, lambda key: True)
    assert_legal(lines)
    assert not _seen(lines)
