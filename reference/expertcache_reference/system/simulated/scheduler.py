"""One thread at a time: every call of the seam hands the decision who goes on to a strategy.

The threads are real, but only the one that holds the baton runs. Between two calls of the seam a thread is never
interrupted, so a run is a function of the program and the choices.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from expertcache_reference.system.simulated.schedules import Strategy, WrongSchedule
from expertcache_reference.system.simulated.tasks import ASLEEP, Finding, Kind, Stopped, Task, Waitable

LOOK_UP = 1.0


class Scheduler:
    """The threads of one run, its virtual time in nanoseconds, its choices and what was found.

    The thread that makes it is the first task. `log` has (time, task, what, where) for every call of the seam.
    """

    def __init__(self, strategy: Strategy, most_steps: int = 200_000) -> None:
        self.strategy, self.most_steps = strategy, most_steps
        self.main = self.current = Task(0, "main")
        self.alive = [self.main]
        self.started, self.time, self.stopped = 1, 0, False
        self.choices: list[int] = []
        self.log: list[tuple[int, int, str, object]] = []
        self.finding: Finding | None = None

    def found(self, kind: Kind, what: str) -> None:
        """The run has failed: keep the first finding, and let everybody unwind."""
        if self.finding is None:
            self.finding = Finding(kind, what)
        self.stopped = True

    def fail(self, kind: Kind, what: str) -> Stopped:
        """As `found`, and what the thread at fault then raises."""
        self.found(kind, f"{self.current.name} {what}")
        return Stopped()

    def decide(self, options: int, forced: bool) -> int:
        """One of the options, as the strategy will."""
        if options == 1:
            return 0
        try:
            choice = self.strategy.choose(options, forced)
        except WrongSchedule as wrong:
            self.found("schedule", wrong.what)
            raise Stopped from None
        if not 0 <= choice < options:
            self.found("schedule", f"decision {len(self.choices)} has {options} options, not an option {choice}")
            raise Stopped
        self.choices.append(choice)
        return choice

    def switch(self, what: str, where: object = "", waits: Waitable | None = None) -> None:
        """A call of the seam: whoever the strategy picks goes on; returns when this thread is picked and free."""
        if self.stopped:
            raise Stopped
        me = self.current
        self.log.append((self.time, me.index, what, where))
        if len(self.log) > self.most_steps:
            raise self.fail(
                "endless", f"is one of {len(self.alive)} threads still at work after {self.most_steps} calls"
            )
        me.waits = waits
        chosen = self._pick()
        if chosen is not me:
            self._change(me, chosen)
            if self.stopped:
                raise Stopped
        me.waits = None

    def sleep(self, nanoseconds: int, what: str, where: object = "") -> None:
        """Let virtual time pass; it does when no thread can go on."""
        if nanoseconds < 0:
            raise self.fail("arguments", f"would have {nanoseconds} ns pass")
        if nanoseconds:
            self.current.until = self.time + nanoseconds
        self.switch(what, where, ASLEEP if nanoseconds else None)

    def _pick(self) -> Task:
        """The thread that goes on; raises `Stopped` where none ever can."""
        free = [task for task in self.alive if task.waits is None or task.waits.free()]
        while not free:
            self._advance()
            free = [task for task in self.alive if task.waits is None or task.waits.free()]
        if len(free) == 1:
            return free[0]
        runs_on = self.current in free
        if runs_on:
            free.remove(self.current)
            free.insert(0, self.current)
        return free[self.decide(len(free), not runs_on)]

    def _advance(self) -> None:
        """On to the next waking; raises `Stopped` where all wait for each other."""
        times = [task.until for task in self.alive if task.until is not None]
        if not times:
            kind: Kind = "lost-wake-up" if any("notified" in str(task.waits) for task in self.alive) else "deadlock"
            self.found(kind, "; ".join(f"{task.name} waits for {task.waits}" for task in self.alive))
            raise Stopped
        self.time = min(times)
        for task in self.alive:
            if task.until is not None and task.until <= self.time:
                task.waits = task.until = None

    def _hand(self, task: Task) -> None:
        self.current = task
        task.gate.release()

    def _change(self, me: Task, chosen: Task) -> None:
        """Hand the baton on and wait for it. Ctrl-C finds the main thread without it: all unwind, it waits in `drain`.

        The main thread looks up every second: a signal just before it blocks would not wake it.
        """
        try:
            self._hand(chosen)
            while not me.gate.acquire(timeout=LOOK_UP if me is self.main else -1):
                pass
        except BaseException:
            self.stopped = True
            raise

    def spawn(self, name: str, run: Callable[[], None]) -> Task:
        """A new task, with a real thread that waits for its first turn."""
        task = Task(self.started, name)
        threading.Thread(target=self._work, args=(task, run), name=name, daemon=True).start()
        self.started += 1
        self.alive.append(task)
        self.switch("spawn", name)
        return task

    def _work(self, task: Task, run: Callable[[], None]) -> None:
        task.gate.acquire()
        try:
            if not self.stopped:
                run()
        except Stopped:
            pass
        except BaseException as error:
            self.found("exception", f"{task.name} let {error!r} escape")
        self._leave(task)

    def _leave(self, task: Task) -> None:
        """The task is over: the next one goes on; when the run is over, the youngest first and the main thread last."""
        task.over = True
        self.alive.remove(task)
        try:
            following = self.alive[-1] if self.stopped else self._pick()
        except Stopped:
            following = self.alive[-1]
        self._hand(following)

    def drain(self) -> None:
        """Called by the main thread at its end: whoever still runs is leaked; returns when all have unwound."""
        if len(self.alive) > 1:
            rest = (f"{task.name} ({task.waits or 'at work'})" for task in self.alive[1:])
            self.found("leaked-thread", f"at the end of main: {', '.join(rest)}")
        while len(self.alive) > 1:
            if self.current is self.main:  # else Ctrl-C took it away while another had the baton, who brings it
                self._hand(self.alive[-1])
            self.main.gate.acquire()
