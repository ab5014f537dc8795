"""One run of a program on a simulated machine, from the first call to the last."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs

from expertcache_reference.system.simulated.machine import SimulatedMachine, Simulation
from expertcache_reference.system.simulated.scheduler import Scheduler
from expertcache_reference.system.simulated.schedules import Replay, Strategy, WrongSchedule, choices_of, text_of
from expertcache_reference.system.simulated.tasks import Finding, Kind, Stopped
from expertcache_spec.errors import ExpertCacheError

Program = Callable[[SimulatedMachine], Any]


class RunFailed(ExpertCacheError):
    """A run on a simulated machine that broke something; `finding` says what, the cure is how to see it again."""

    code = "run-failed"


@attrs.frozen
class Outcome:
    """What one run did.

    finding: what is wrong with it, None if nothing. schedule: the line that replays it. error: what the program let
    escape. value: what it returned. decisions: how many there were. reads, calls, opens, sizes, maps: of files, and
    memories, threads: of the machine, to inject faults at each. time: virtual nanoseconds. log: every call of the seam,
    as (time, thread, what, where).
    """

    finding: Finding | None
    schedule: str
    error: BaseException | None
    value: Any
    decisions: int
    reads: int
    calls: int
    opens: int
    sizes: int
    maps: int
    memories: int
    threads: int
    time: int
    log: tuple[tuple[int, int, str, object], ...] = attrs.field(repr=False)

    @property
    def kind(self) -> Kind | None:
        """The kind of what is wrong with it."""
        return self.finding.kind if self.finding else None

    def story(self) -> str:
        """The log as lines: virtual time, thread, call."""
        return "\n".join(
            f"{time:>12} {'  ' * task}{task} {what} {where}".rstrip() for time, task, what, where in self.log
        )

    def check(self) -> None:
        """Raises `RunFailed` if something is wrong."""
        if self.finding is not None:
            kind, what = self.finding
            raise RunFailed(f"{kind}: {what}", where="simulated run", cure=f"replay {self.schedule!r}") from self.error


class Run:
    """A machine and its scheduler; the thread that makes it is the main one, and it calls `end`."""

    def __init__(self, simulation: Simulation, strategy: Strategy) -> None:
        self.scheduler = Scheduler(strategy, simulation.most_steps)
        self.machine = SimulatedMachine(simulation, self.scheduler)

    def end(self, error: BaseException | None) -> None:
        """Look for what is left over, unwind it, and let Ctrl-C through."""
        if isinstance(error, Exception):
            self.scheduler.found("exception", f"main let {error!r} escape")
        self.scheduler.drain()
        if not self.scheduler.stopped and self.machine.disk.open_files:
            self.scheduler.found("open-file", f"left open: {', '.join(self.machine.disk.open_files)}")

    def outcome(self, error: BaseException | None, value: Any) -> Outcome:
        """What it did."""
        scheduler, injector = self.scheduler, self.machine.injector
        return Outcome(
            scheduler.finding, text_of(scheduler.choices), error, value, len(scheduler.choices),
            injector.reads, injector.calls, injector.opens, injector.sizes, injector.maps, injector.memories,
            injector.threads, scheduler.time, tuple(scheduler.log),
        )  # fmt: skip


def run(program: Program, strategy: Strategy, simulation: Simulation | None = None) -> Outcome:
    """Run a program once on a fresh machine, which it gets as its argument. Ctrl-C unwinds it and goes on up."""
    this, error, value = Run(simulation or Simulation(), strategy), None, None
    try:
        value = program(this.machine)
    except Stopped:
        pass
    except Exception as escaped:
        error = escaped
    except BaseException:
        this.end(None)
        raise
    this.end(error)
    return this.outcome(error, value)


def replay(program: Program, schedule: str, simulation: Simulation | None = None) -> Outcome:
    """Run it once more by a schedule that was printed. Raises `WrongSchedule` if it is not one of this program."""
    outcome = run(program, Replay(choices_of(schedule)), simulation)
    if outcome.schedule != text_of(choices_of(schedule)):
        why = outcome.finding.what if outcome.finding else f"the run ended after decision {outcome.decisions}"
        raise WrongSchedule(f"{schedule!r}: {why}", where="replay", cure="explore again: the program has changed")
    return outcome


@contextmanager
def simulated(simulation: Simulation | None = None, strategy: Strategy | None = None) -> Iterator[SimulatedMachine]:
    """A machine for the block; without a strategy each thread runs until it waits. Raises `RunFailed` at its end."""
    this, error = Run(simulation or Simulation(), strategy or Replay(())), None
    try:
        yield this.machine
    except Stopped:
        pass
    except BaseException as escaped:
        error = escaped
        raise
    finally:
        this.end(error)
    this.outcome(error, None).check()
