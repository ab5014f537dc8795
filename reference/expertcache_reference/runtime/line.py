"""The line: who waits for room, first come, first served, so that nobody starves.

Room comes when a lease ends, a read ends, a pin ends or the budget grows; each wakes the first of each line. Only he
tries; who got in wakes the next. Who holds leases does not stand in line, for he may be the one that all wait for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeVar

from expertcache_reference.runtime.errors import closed
from expertcache_reference.system.seam import Condition, Lock, Machine
from expertcache_spec.errors import MustWait

Result = TypeVar("Result")


class Line:
    """The line of one partition. Every call is made while the lock is held."""

    def __init__(self, machine: Machine, lock: Lock) -> None:
        self._machine, self._lock = machine, lock
        self._waiting: deque[Condition] = deque()
        self.waits = 0
        self.closed = False

    def enter(self, attempt: Callable[[], Result], *, may_wait: bool) -> Result:
        """The result of `attempt`, once it no longer raises `MustWait`; all else that it raises passes through.

        Where the caller may not wait, `MustWait` passes too, and is raised when others are in line already. Raises
        `RuntimeClosed` when the runtime is closed meanwhile.
        """
        if not self._waiting:
            try:
                return attempt()
            except MustWait:
                if not may_wait:
                    raise
        elif not may_wait:
            raise MustWait("others wait for room", where="runtime", cure="release an executed event, then try again")
        return self._stand(attempt)

    def _stand(self, attempt: Callable[[], Result]) -> Result:
        turn = self._machine.condition(self._lock)
        self._waiting.append(turn)
        self.waits += 1
        try:
            while True:
                if self.closed:
                    raise closed("serve")
                turn.wait()
                if self._waiting[0] is turn and not self.closed:
                    try:
                        return attempt()
                    except MustWait:
                        continue
        finally:
            self._waiting.remove(turn)
            self.wake()

    def wake(self) -> None:
        """There may be room: let the first try."""
        if self._waiting:
            self._waiting[0].notify()

    def close(self) -> None:
        """Send everybody away."""
        self.closed = True
        for turn in self._waiting:
            turn.notify()
