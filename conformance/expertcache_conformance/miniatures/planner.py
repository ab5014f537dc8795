"""What a planner of the suite is: a profile, one planning method, a sentence, and the rules that it breaks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import attrs

Method = TypeVar("Method", bound=Callable[..., Any])


@attrs.frozen
class Planner:
    """One planner of the suite; its attributes make it an implementation.

    name: for `--impl`. sentence: what it does wrong, or oddly. source: the report it comes from. breaks: exactly the
    rule ids that the suite must find. claims: profile fields beside the name. methods: what it plans with, by name.
    """

    name: str
    sentence: str
    source: str
    breaks: frozenset[str]
    claims: Mapping[str, Any]
    methods: Mapping[str, Callable[..., Any]]

    @property
    def PROFILE(self) -> dict[str, Any]:  # noqa: N802 - the protocol's name
        """The declared profile."""
        return {"name": self.name, "version": "1", "spec": "0.1", "policies": [], **self.claims}

    def __getattr__(self, name: str) -> Any:
        """A planning method."""
        if name.startswith("_") or name not in self.methods:
            raise AttributeError(name)
        return self.methods[name]


PLANNERS: list[Planner] = []
"""The wrong ones."""
ODD_PLANNERS: list[Planner] = []
"""The legal ones."""


def planner(source: str, *breaks: str, **claims: Any) -> Callable[[Method], Method]:
    """Function decorator: list the planner under its name, with its docstring as the sentence.

    The function's first argument says what it plans: `size` chunks, `layout` extents, `streamed` requests, `offset`
    windows, `tabled` rows of side tables, `packed` whether files are accepted, `request` schedules.
    """

    def enlist(plan: Method) -> Method:
        sentence = " ".join((plan.__doc__ or "").split())
        method, capability = METHODS[next(iter(inspect.signature(plan).parameters))]
        profile = {"capabilities": [capability], **claims}
        name = getattr(plan, "__name__", "")
        found = Planner(name, sentence, source, frozenset(breaks), profile, {method: plan})
        (PLANNERS if breaks else ODD_PLANNERS).append(found)
        return plan

    return enlist


METHODS = {
    "size": ("plan_chunks", "chunks"),
    "layout": ("extents", "layout"),
    "streamed": ("plan_reads", "reads"),
    "offset": ("read_window", "windows"),
    "tabled": ("table_row", "tables"),
    "packed": ("accepts", "opening"),
    "request": ("plan_schedule", "schedule"),
}
