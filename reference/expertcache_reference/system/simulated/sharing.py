"""Bandwidth that all readers share: a device as the specification's schedules have it, in virtual time."""

from __future__ import annotations

from expertcache_reference.system.simulated.scheduler import Scheduler
from expertcache_reference.system.simulated.tasks import ASLEEP, Task
from expertcache_spec.schedule.costs import Storage
from expertcache_spec.schedule.sharing import Sharing
from expertcache_spec.schedule.tasks import TaskId


class Bandwidth:
    """Requests that wait out their latency, and then transfer side by side (XC-SCHED-003).

    Who joins or leaves changes when all others end, so each change sets their waking times anew.
    """

    def __init__(self, scheduler: Scheduler, storage: Storage) -> None:
        self._scheduler, self._storage, self._sharing = scheduler, storage, Sharing(storage)
        self._since = self._served = 0
        self._asleep: dict[TaskId, Task] = {}

    def serve(self, size: int, where: str) -> None:
        """One request of so many bytes, from its beginning to its end."""
        self._scheduler.sleep(self._storage.wait, "read begins", where)
        transfer = self._storage.transfer(size)
        if not transfer:
            return
        self._let_pass()
        self._served += 1
        me = TaskId(self._served, "read")
        self._sharing.begin(me, transfer)
        self._asleep[me] = self._scheduler.current
        self._set_times()
        self._scheduler.switch("read ends", where, ASLEEP)
        self._let_pass()

    def _let_pass(self) -> None:
        """The time since the last change has gone into transfers; those that are whole are over."""
        now = self._scheduler.time
        for done in self._sharing.advance(now - self._since):
            del self._asleep[done]
        self._since = now
        self._set_times()

    def _set_times(self) -> None:
        for task, left in self._sharing.left.items():
            self._asleep[task].until = self._scheduler.time - (-left // self._sharing.share)
