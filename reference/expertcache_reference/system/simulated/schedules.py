"""Who goes on at each decision: strategies, and schedules as a line of text that can be printed and replayed.

A decision is an option among the threads that could go on. Option 0 is the thread that runs already, or the oldest
where it cannot; so a run without any preemption is all zeros, and only the other options need writing down.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol

from expertcache_spec.errors import ExpertCacheError

STRAIGHT = "straight"
"""The schedule of all zeros: each thread runs until it waits."""


class WrongSchedule(ExpertCacheError):
    """A schedule that cannot be read, or that is not one of this program: it has changed, or is not deterministic."""

    code = "wrong-schedule"


def text_of(choices: Sequence[int]) -> str:
    """The choices as text: `4:1 9:2` takes option 1 at decision 4, 2 at decision 9, and 0 at all others."""
    return " ".join(f"{at}:{choice}" for at, choice in enumerate(choices) if choice) or STRAIGHT


def choices_of(text: str) -> list[int]:
    """What `text_of` wrote. Raises `WrongSchedule`."""
    choices: list[int] = []
    for word in [] if text.strip() == STRAIGHT else text.split():
        at, _, choice = word.partition(":")
        if not (at.isdecimal() and choice.isdecimal() and len(choices) <= int(at) < 10**7 and int(choice)):
            raise WrongSchedule(f"{word!r}", where="schedule", cure="copy the whole line that was printed, like '4:1'")
        choices += [0] * (int(at) - len(choices)) + [int(choice)]
    return choices


class Strategy(Protocol):
    """Decides; one object for one run."""

    def choose(self, options: int, forced: bool) -> int:
        """One of `options` (2 or more); forced where option 0 is not the thread that runs, so none is preempted."""
        ...


class Chance:
    """Each option as likely as any other, at each decision."""

    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed).random

    def choose(self, options: int, forced: bool) -> int:
        """As `Strategy.choose`."""
        return int(self._random() * options)


class Preempting:
    """At most so many preemptions, at decisions drawn among the first `within`; the rest runs on, or is drawn.

    Most races need two or three preemptions in the right places, and chance alone seldom lets a thread run on
    (Musuvathi and Qadeer, Iterative context bounding, PLDI 2007; Burckhardt and others, PCT, ASPLOS 2010).
    """

    def __init__(self, seed: int | str, preemptions: int, within: int) -> None:
        self._random = random.Random(seed)
        self._points = set(self._random.sample(range(max(within, preemptions)), preemptions))
        self._at = -1

    def choose(self, options: int, forced: bool) -> int:
        """As `Strategy.choose`."""
        self._at += 1
        if forced:
            return self._random.randrange(options)
        return self._random.randrange(1, options) if self._at in self._points else 0


class Replay:
    """The choices of an earlier run, then option 0. Lenient takes the last option where there are not so many."""

    def __init__(self, choices: Sequence[int], *, lenient: bool = False) -> None:
        self._choices, self._lenient, self._at = choices, lenient, -1

    def choose(self, options: int, forced: bool) -> int:
        """As `Strategy.choose`; what is no option is for the scheduler to refuse."""
        self._at += 1
        choice = self._choices[self._at] if self._at < len(self._choices) else 0
        return min(choice, options - 1) if self._lenient else choice


class Systematic:
    """One run of a depth-first walk over all choices: a prefix that is given, then option 0.

    The prefix is of choices and of how many there were to choose from. `preemptions` bounds how many a run may have;
    None is all. `following` is the next prefix, None after the last.
    """

    def __init__(self, prefix: Sequence[tuple[int, int]], preemptions: int | None = None) -> None:
        self._prefix, self._left = prefix, preemptions
        self._taken: list[tuple[int, int]] = []

    def choose(self, options: int, forced: bool) -> int:
        """As `Strategy.choose`. Raises `WrongSchedule` where an earlier run had another number of options here."""
        at = len(self._taken)
        open_options = options if forced or self._left is None or self._left > 0 else 1
        choice, before = self._prefix[at] if at < len(self._prefix) else (0, open_options)
        if open_options != before:
            raise WrongSchedule(
                f"decision {at} has {open_options} options, and had {before} after the same decisions",
                where="program", cure="take out of it what differs from run to run",
            )  # fmt: skip
        self._taken.append((choice, open_options))
        if choice and not forced and self._left is not None:
            self._left -= 1
        return choice

    def strayed(self) -> str:
        """Why the run was not the one of its prefix, if it ended before; empty if it was."""
        at = len(self._taken)
        return (
            "" if at >= len(self._prefix) else f"the run ended after {at} decisions, and had more after the same ones"
        )

    def following(self) -> list[tuple[int, int]] | None:
        """The prefix of the next run: the last decision with an option left takes it."""
        taken = list(self._taken)
        while taken:
            choice, options = taken.pop()
            if choice + 1 < options:
                return [*taken, (choice + 1, options)]
        return None
