"""Locks, conditions and threads whose every call is a decision of the scheduler."""

from __future__ import annotations

from types import TracebackType

from expertcache_reference.system.simulated.scheduler import Scheduler
from expertcache_reference.system.simulated.tasks import Stopped, Task


class SimulatedLock:
    """As `seam.Lock`. Taking it twice, or letting go of what is not held, is a finding."""

    def __init__(self, scheduler: Scheduler, name: str) -> None:
        self._scheduler, self.name = scheduler, name
        self.owner: Task | None = None

    def free(self) -> bool:
        """Whether nobody holds it."""
        return self.owner is None

    def __str__(self) -> str:
        return self.name if self.owner is None else f"{self.name}, held by {self.owner.name}"

    def __enter__(self) -> SimulatedLock:
        if self.owner is self._scheduler.current and not self._scheduler.stopped:
            raise self._scheduler.fail("lock", f"takes {self.name} a second time")
        self._scheduler.switch("take", self.name, self)
        self.owner = self._scheduler.current
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._scheduler.stopped:
            return  # all unwind, and one that unwinds out of a wait does not hold it
        self.must_be_held("leaves")
        self.owner = None
        self._scheduler.switch("leave", self.name)

    def must_be_held(self, verb: str) -> None:
        """By the thread that runs."""
        if self.owner is not self._scheduler.current and not self._scheduler.stopped:
            raise self._scheduler.fail("lock", f"{verb} {self.name} without holding it")


class SimulatedCondition:
    """As `seam.Condition`. Which of several waiters `notify` wakes is a decision like any other."""

    def __init__(self, scheduler: Scheduler, lock: SimulatedLock, name: str, spurious_every: int | None) -> None:
        self._scheduler, self._lock, self.name = scheduler, lock, name
        self._every, self._waits = spurious_every, 0
        self._waiting: list[Task] = []

    def free(self) -> bool:
        """Never: a notification turns those that wait here into ones that wait for the lock."""
        return False

    def __str__(self) -> str:
        return f"{self.name} to be notified"

    def wait(self) -> bool:
        """As `seam.Condition.wait`."""
        lock, me = self._lock, self._scheduler.current
        lock.must_be_held(f"waits on {self.name} of")
        self._waits += 1
        lock.owner = None
        without_cause = self._every is not None and self._waits % self._every == 0
        if not without_cause:
            self._waiting.append(me)
        self._scheduler.switch("wait", self.name, lock if without_cause else self)
        lock.owner = me
        return True

    def notify(self) -> None:
        """As `seam.Condition.notify`."""
        self._ready("notify")
        if self._waiting:
            task = self._waiting.pop(self._scheduler.decide(len(self._waiting), forced=True))
            task.waits = self._lock

    def notify_all(self) -> None:
        """As `seam.Condition.notify_all`."""
        self._ready("notify all")
        for task in self._waiting:
            task.waits = self._lock
        self._waiting.clear()

    def _ready(self, what: str) -> None:
        self._lock.must_be_held(f"notifies {self.name} of")
        self._scheduler.switch(what, self.name)


class SimulatedThread:
    """As `seam.Thread`."""

    def __init__(self, scheduler: Scheduler, task: Task) -> None:
        self._scheduler, self._task = scheduler, task

    def join(self) -> None:
        """As `seam.Thread.join`; a thread that joins itself waits for ever, which is a deadlock."""
        if self._scheduler.stopped:
            raise Stopped
        self._scheduler.switch("join", self._task.name, self._task)
