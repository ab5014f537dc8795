"""Writing a log: a replay of the machine as the log that an engine would write that decides as it does."""

from __future__ import annotations

from collections.abc import Iterator

from expertcache_spec.errors import MustWait
from expertcache_spec.eviction import card
from expertcache_spec.history.header import Header, encode_header
from expertcache_spec.history.recorder import Record, Recorder
from expertcache_spec.replay import Replay
from expertcache_spec.residency import Selection
from expertcache_spec.trace import Event


def header_of(run: Replay, name: str = "replay") -> Header:
    """The header of a replay's log."""
    found = card(run.policy)
    return Header(run.trace.geometry, run.budget, run.settings, found.name, found.complete(run.parameters), name=name)


def log_of(run: Replay, *, split: int = 1, page: int = 16384, ahead: int = 0) -> Iterator[Record]:
    """The log of a replay, header first: every line that an engine would write that decides as this machine does.

    split, page: how each record is read. ahead: how many further events are selected and loaded before the work on the
    first executes, as an engine does that encodes layers ahead; fewer where their leases leave no room. The replay's
    machine is used up. Raises what the replay raises.
    """
    recorder = Recorder(run.machine, split, page)
    yield encode_header(header_of(run))
    waiting: list[Selection] = []
    for event in run.events:
        yield from _served(recorder, event, waiting)
        while len(waiting) > ahead:
            recorder.finish(waiting.pop(0))
        yield from recorder.taken()
    for selection in waiting:
        recorder.finish(selection)
    recorder.end()
    yield from recorder.taken()


def _served(recorder: Recorder, event: Event, waiting: list[Selection]) -> Iterator[Record]:
    """Select and load the event, wave after wave; its last wave waits for its work."""
    while True:
        try:
            selection = recorder.select(event)
            break
        except MustWait:
            if not waiting:
                raise
            recorder.finish(waiting.pop(0))
    recorder.load(selection)
    while selection.deferred:
        for each in waiting:
            recorder.finish(each)
        waiting.clear()
        recorder.finish(selection)
        yield from recorder.taken()
        selection = recorder.resume(selection)
        recorder.load(selection)
    waiting.append(selection)
