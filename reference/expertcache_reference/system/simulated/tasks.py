"""Threads as a scheduler sees them: what they wait for, and what can be wrong with a run of them."""

from __future__ import annotations

import threading
from typing import Literal, NamedTuple, Protocol

Kind = Literal[
    "exception", "deadlock", "lost-wake-up", "leaked-thread", "lock", "open-file", "memory", "arguments", "endless",
    "schedule",
]  # fmt: skip


class Finding(NamedTuple):
    """What is wrong with a run: a kind to count by, and a sentence."""

    kind: Kind
    what: str


class Stopped(BaseException):
    """The run is over and every thread of it unwinds. Nobody catches this but the scheduler."""


class Waitable(Protocol):
    """What a thread can wait for."""

    def free(self) -> bool:
        """Whether it may go on."""
        ...

    def __str__(self) -> str:
        """In words."""
        ...


class Task:
    """A thread as the scheduler sees it; `waits` is None while it can go on, `until` its waking time if it sleeps."""

    __slots__ = ("gate", "index", "name", "over", "until", "waits")

    def __init__(self, index: int, name: str) -> None:
        self.index, self.name, self.over = index, name, False
        self.waits: Waitable | None = None
        self.until: int | None = None
        self.gate = threading.Lock()
        self.gate.acquire()

    def free(self) -> bool:
        """As `Waitable.free`, for those that join it."""
        return self.over

    def __str__(self) -> str:
        return f"the end of {self.name}"


class Sleep:
    """Virtual time; only the scheduler ends it."""

    def free(self) -> bool:
        """As `Waitable.free`."""
        return False

    def __str__(self) -> str:
        return "time to pass"


ASLEEP = Sleep()
