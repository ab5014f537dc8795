"""The one way in which a reader refuses: an `InvalidTrace` that names file, line and cure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import TracebackType

from expertcache_spec.errors import InvalidTrace
from expertcache_spec.model import Geometry
from expertcache_spec.trace import Event, TraceChecker


class At:
    """`with At(place):` puts the place in front of every `InvalidTrace` raised inside."""

    def __init__(self, place: str) -> None:
        self.place = place

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if isinstance(error, InvalidTrace) and not error.where.startswith(self.place):
            where = f"{self.place}: {error.where}" if error.where else self.place
            raise InvalidTrace(error.what, where=where, cure=error.cure) from error


def checked(pairs: Iterable[tuple[str, Event]], geometry: Geometry, name: str) -> Iterator[Event]:
    """The events of (place, event) pairs, checked one by one against the model and each other, and at the end.

    Needs memory for one event and one small state for each stream (XC-TRACE-002, XC-TRACE-005).
    """
    checker = TraceChecker(geometry)
    for place, event in pairs:
        with At(place):
            checker.feed(event)
        yield event
    with At(name):
        checker.finish()
