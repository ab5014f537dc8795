"""One fault at every call of small programs: every waiter hears of it, nothing is lost, and a retry works."""

from __future__ import annotations

import errno
from typing import Any

import attrs
import pytest

from expertcache_reference.reader import ReadFailed
from expertcache_reference.runtime import Runtime
from expertcache_reference.system.simulated import Faults, Outcome, Replay, simulated
from expertcache_reference.system.simulated import run as run_once
from expertcache_reference.system.simulated.schedules import Chance
from expertcache_spec.model import Budget

from .runtime_menu import PROGRAMS
from .runtime_programs import Program, assert_legal, consume, simulation

KEPT = (
    "two streams, three slots", "two slots, so that streams wait in line", "staged, in pages", "pipelined",
    "sync out of a mapping", "records of two sizes, in bytes", "waves", "room trim", "room retain", "prefetches",
    "seeds and pins", "resizes",
)  # fmt: skip
"""Programs that keep what they read."""

ALONE = ("no capacity", "bypass of what does not fit", "bypass instead of waiting", "refusable")
"""Programs that also read what they do not keep: the log has no line for such a read that fails."""


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


def _completed(found: Program, lines: list[dict[str, Any]]) -> bool:
    """Whether every event of every stream was released at least once after all its reads had ended well."""
    wanted = sum(map(len, found.streams))
    return (
        len({(line["stream"], line["pass"], line["layer"]) for line in lines if line.get("op") == "select"}) == wanted
    )


@pytest.mark.rule("XC-RES-016", "XC-HIST-011", "XC-RES-009")
@pytest.mark.parametrize("name", [*KEPT, *ALONE])
def test_an_error_at_any_read_reaches_its_waiters_and_a_retry_succeeds(name: str) -> None:
    found = PROGRAMS[name]
    reads = _outcome(found, Faults()).reads
    assert reads > 3 or found.options.get("way") == "mmap"
    for number in range(1, reads + 1):
        for seed in (None, f"fault/{number}"):
            outcome = _outcome(found, Faults(errors={number: errno.EIO}), seed)
            assert len(_told(outcome)) <= len(found.streams), "each waiter once, nobody else"
            assert _completed(found, outcome.value["lines"])
            assert_legal(outcome.value["lines"])


@pytest.mark.rule("XC-RES-016")
@pytest.mark.parametrize("name", ["two streams, three slots", "sync out of a mapping"])
def test_a_file_that_cannot_be_opened_once_is_opened_by_the_retry(name: str) -> None:
    found = PROGRAMS[name]
    opens = _outcome(found, Faults()).opens
    assert opens == len(found.found.layout.files), "each file is opened once"
    for number in range(1, opens + 1):
        outcome = _outcome(found, Faults(open_errors={number: errno.EMFILE}))
        assert _told(outcome)
        assert _completed(found, outcome.value["lines"])
        assert_legal(outcome.value["lines"])


@pytest.mark.parametrize("way", ["pread", "mmap"])
@pytest.mark.parametrize("name", ["two streams, three slots", "staged, in pages", "prefetches"])
def test_a_file_cut_off_at_any_call_is_an_error_that_says_so(name: str, way: str) -> None:
    found = attrs.evolve(PROGRAMS[name], options={"way": way})
    path = next(iter(found.found.files()))
    calls = max(_outcome(found, Faults()).calls, _outcome(found, Faults()).reads)
    for number in range(1, calls + 1):
        outcome = _outcome(found, Faults(cut={path: (number, 70)}))
        for error in _told(outcome):
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


@pytest.mark.parametrize("most", range(3))
def test_without_threads_nothing_is_left_open(most: int) -> None:
    """The third thread would be a stream's; the runtime has two workers."""
    found = attrs.evolve(PROGRAMS["two streams, three slots"], streams=PROGRAMS["two streams, three slots"].streams[:1])
    outcome = _outcome(found, Faults(most_threads=most))
    assert outcome.value["opened"] == (most >= 2)


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
