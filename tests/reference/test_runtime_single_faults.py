"""One fault at every call of small programs: every waiter hears of it, nothing is lost, and a retry works."""

from __future__ import annotations

import errno
import os
from typing import Any

import attrs
import pytest

from expertcache_reference.reader import ReadCancelled, ReadFailed
from expertcache_reference.runtime import Runtime
from expertcache_reference.system.simulated import Faults, Outcome, Replay, simulated
from expertcache_reference.system.simulated import run as run_once
from expertcache_reference.system.simulated.schedules import Chance
from expertcache_spec.model import Budget

from .runtime_menu import PROGRAMS
from .runtime_programs import Program, assert_legal, consume, simulation

KINDS: dict[str, tuple[str, int, str]] = {
    "reads": ("errors", errno.EIO, "pread"), "opens": ("open_errors", errno.EMFILE, "pread"),
    "sizes": ("size_errors", errno.ESTALE, "mmap"), "maps": ("map_errors", errno.ENODEV, "mmap"),
    "opens of what is mapped": ("open_errors", errno.EMFILE, "mmap"),
    "memories": ("memory_errors", errno.ENOMEM, "pread"),
}  # fmt: skip
"""Every kind of call below the runtime that may fail, but threads: its knob, an errno, the way of reading."""

CLOSED = tuple(name for name in PROGRAMS if name.startswith("closed"))
"""Programs that end in the middle: there is no retry."""


def _outcome(found: Program, faults: Faults, seed: str | None = None) -> Outcome:
    strategy = Replay(()) if seed is None else Chance(seed)
    outcome = run_once(found, strategy, simulation(found.found, faults=faults))
    outcome.check()
    for error in outcome.value["seen"]:
        if isinstance(error, AssertionError):
            raise error
    return outcome


def _told(outcome: Outcome) -> list[ReadFailed]:
    return [error for error in outcome.value["seen"] if isinstance(error, ReadFailed)]


def _counted(outcome: Outcome, kind: str) -> int:
    return int(getattr(outcome, kind.split()[0]))


def _assert_borne(name: str, kind: str, outcome: Outcome, files: set[str]) -> None:
    """Whoever waited was told what it was, each event was served by a retry, and the log is legal."""
    found, number = PROGRAMS[name], KINDS[kind][1]
    told = [error for error in _told(outcome) if not isinstance(error, ReadCancelled)]
    assert len(told) <= len(found.streams) + len(found.others), "each waiter once, nobody else"
    for error in told:
        assert os.strerror(number) in error.what
        assert (error.got == 0 and error.where in files) or kind == "memories"
    assert name in CLOSED or outcome.value["served"] == sum(map(len, found.streams))
    assert_legal(outcome.value["lines"])


def _fail_each(name: str, kind: str, seed: str | None) -> None:
    knob, number, way = KINDS[kind]
    found = attrs.evolve(PROGRAMS[name], options={"way": way})
    files, count = set(found.found.files()), _counted(_outcome(found, Faults()), kind)
    assert count > 0, "there is something to fail"
    if kind.startswith(("opens", "maps")):
        assert count <= len(files), "each file is opened once, and mapped once"
    for at in range(1, count + 1):
        faults: dict[str, Any] = {knob: {at: number}}
        outcome = _outcome(found, Faults(**faults), None if seed is None else f"{seed}/{at}")
        assert seed is not None or _counted(outcome, kind) >= at, "it has failed"
        if outcome.value["opened"] or kind != "memories":
            _assert_borne(name, kind, outcome, files)


@pytest.mark.rule("XC-RES-016", "XC-HIST-011", "XC-RES-009")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_error_at_any_call_reaches_its_waiters_and_a_retry_succeeds(name: str, kind: str) -> None:
    for seed in (None, "fault") if kind == "reads" else (None,):
        _fail_each(name, kind, seed)


@pytest.mark.nightly
@pytest.mark.rule("XC-RES-016", "XC-HIST-011", "XC-RES-009")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_so_it_does_under_other_schedules(name: str, kind: str) -> None:
    for draw in range(5):
        _fail_each(name, kind, f"fault/{draw}")


CUT_OFF = ("two streams, three slots", "staged, in pages", "prefetches")


@pytest.mark.parametrize("way", ["pread", "mmap"])
@pytest.mark.parametrize(
    "name", [name if name in CUT_OFF else pytest.param(name, marks=pytest.mark.nightly) for name in PROGRAMS]
)
def test_a_file_cut_off_at_any_call_is_an_error_that_says_so(name: str, way: str) -> None:
    found = attrs.evolve(PROGRAMS[name], options={"way": way})
    path = next(iter(found.found.files()))
    plain = _outcome(found, Faults())
    calls = max(plain.calls, plain.reads)
    assert calls > 3
    for number in range(1, calls + 1):
        outcome = _outcome(found, Faults(cut={path: (number, 70)}))
        for error in _told(outcome):
            if isinstance(error, ReadCancelled):
                continue
            assert error.file in path
            assert error.wanted > error.got >= 0
            assert str(error.wanted) in str(error)
        assert_legal(outcome.value["lines"])


@pytest.mark.rule("XC-FANOUT-005")
@pytest.mark.parametrize(
    "faults",
    [Faults(bytes_per_call=7), Faults(bytes_per_call=1), Faults(interrupt_every=2), Faults(interrupt_every=3),
     Faults(bytes_per_call=50, interrupt_every=2), Faults(most_per_read=10, over_limit="refuse"),
     Faults(most_per_read=33, over_limit="cut"), Faults(spurious_every=2), Faults(spurious_every=3)],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("name", ["two streams, three slots", "waves", "no capacity"])
def test_what_is_no_error_is_never_taken_for_one(name: str, faults: Faults) -> None:
    outcome = _outcome(PROGRAMS[name], faults)
    assert outcome.value["seen"] == []
    assert_legal(outcome.value["lines"])


@pytest.mark.parametrize("name", PROGRAMS)
def test_without_threads_nothing_is_left_open(name: str) -> None:
    """The runtime has two workers; a third thread would be another stream's, or for what else happens."""
    found = attrs.evolve(PROGRAMS[name], streams=PROGRAMS[name].streams[:1], others=())
    assert _outcome(found, Faults()).threads == 2
    for most in range(3):
        assert _outcome(found, Faults(most_threads=most)).value["opened"] == (most >= 2)


@pytest.mark.parametrize("name", ["two streams, three slots", "records of two sizes, in bytes", "no capacity"])
def test_without_memory_an_event_fails_or_the_runtime_does_not_open(name: str) -> None:
    found = PROGRAMS[name]
    opened = []
    for most in range(0, 1025, 64):
        outcome = _outcome(found, Faults(most_memory=most))
        opened.append(outcome.value["opened"])
        assert not outcome.value["opened"] or outcome.value["seen"] == [] or _told(outcome)
        if outcome.value["opened"]:
            assert_legal(outcome.value["lines"])
    assert opened[-1]
    assert opened == sorted(opened)


def test_a_log_whose_sink_fails_costs_the_log_and_nothing_else() -> None:
    found = PROGRAMS["two streams, three slots"]
    with simulated(simulation(found.found)) as machine:
        for most in range(1, 40):
            lines: list[dict[str, Any]] = []

            def sink(line: dict[str, Any], lines: list[dict[str, Any]] = lines, most: int = most) -> None:
                if len(lines) == most:
                    raise OSError(errno.ENOSPC, "no space left")
                lines.append(line)

            runtime = Runtime(found.found, Budget(slots=3), machine=machine, workers=1, log=sink)
            for each in found.streams[0]:
                with runtime.serve(each) as work:
                    consume(work, {})
            with pytest.raises(OSError, match="no space left"):
                runtime.close()
            assert len(lines) == most
            runtime.close()
