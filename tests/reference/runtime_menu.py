"""The programs that schedules and faults are tried on: each small, together everything that a runtime can be told."""

from __future__ import annotations

from typing import Any

import attrs

from expertcache_reference.runtime import Runtime
from expertcache_spec.model import Budget, Key
from expertcache_spec.residency import Settings
from expertcache_spec.trace import Event

from .runtime_programs import Act, Program, event, store

ONE = store(layers=1, experts=3)
FOUR = store(layers=1, experts=4)
TWO = store(layers=2, experts=3, stacked=True)
MIXED = store(layers=2, experts=3, parts=[{"gate": 64, "down": 32}, {"gate": 128, "up": 10, "down": 64}])
PAGES = store(layers=1, experts=3, parts={"gate": 128, "up": 64, "down": 128})

STREAMS = (
    tuple(event(0, *rows, stream=0, number=at) for at, rows in enumerate([(0, 1), (1, 2), (2, 0)])),
    tuple(event(0, *rows, stream=1, number=at) for at, rows in enumerate([(2, 1), (0, 2)])),
)
LAYERS = tuple(
    tuple(event(at % 2, *rows, stream=stream, number=at // 2) for at, rows in enumerate(all_rows))
    for stream, all_rows in enumerate([[(0, 1), (1, 2), (2, 0), (0, 2)], [(2, 1), (2, 0)]])
)
PROMPT = Event(0, ((0, 1), (1, 2)), 0, 0, "prefill")


def _prefetch(layer: int, expert: int) -> Act:
    return lambda runtime: runtime.prefetch(Key(layer, expert))


def _resize(**budget: int) -> Act:
    return lambda runtime: runtime.resize(Budget(**budget))


def _ahead(runtime: Runtime) -> None:
    """Two events open at once, as an engine that encodes ahead; refused where room lacks, and then drained."""
    first = runtime.serve(event(0, 0, 1, stream=7), ahead=True)
    try:
        list(first.batches())
        second = runtime.serve(event(0, 2, stream=7, number=1), ahead=True)
        try:
            list(second.batches())
        finally:
            second.release()
    finally:
        first.release()


CLOSING = (Runtime.close,)
PROGRAMS: dict[str, Program] = {
    "two streams, three slots": Program(ONE, Budget(slots=3), streams=STREAMS),
    "two slots, so that streams wait in line": Program(ONE, Budget(slots=2), streams=STREAMS),
    "pipelined": Program(ONE, Budget(slots=3), discipline="pipelined", streams=STREAMS),
    "staged, in pages": Program(PAGES, Budget(slots=3), discipline="staged", streams=STREAMS),
    "sync out of a mapping": Program(TWO, Budget(slots=4), discipline="sync", streams=LAYERS, options={"way": "mmap"}),
    "a quota a layer": Program(TWO, Budget(slots=4), Settings(scope="layer"), streams=LAYERS),
    "records of two sizes, in bytes": Program(MIXED, Budget(bytes=2 * 202), streams=LAYERS),
    "no capacity": Program(ONE, Budget(slots=0), streams=STREAMS),
    "bypass of what does not fit": Program(ONE, Budget(slots=1), Settings(overflow="bypass"), streams=STREAMS),
    "bypass instead of waiting": Program(
        ONE, Budget(slots=2), Settings(no_victim="bypass"), "pipelined", streams=STREAMS
    ),
    "waves": Program(ONE, Budget(slots=1), Settings(overflow="waves"), streams=STREAMS),
    "waves beside a prefetch": Program(
        ONE, Budget(slots=2), Settings(overflow="waves"),
        streams=((PROMPT,), STREAMS[1][:1]), others=((_prefetch(0, 1),),),
    ),
    "room trim": Program(ONE, Budget(slots=2), Settings(room="trim"), streams=STREAMS),
    "room retain": Program(ONE, Budget(slots=2), Settings(room="retain"), streams=STREAMS),
    "refusable": Program(ONE, Budget(slots=2), Settings(admission="cold-slots"), streams=STREAMS),
    "prefetches": Program(
        TWO, Budget(slots=5), discipline="pipelined", streams=LAYERS[:1],
        before=(_prefetch(0, 0), _prefetch(0, 1)), others=((_prefetch(1, 1), _prefetch(1, 2), _prefetch(0, 2)),),
    ),
    "seeds and pins": Program(
        FOUR, Budget(slots=3), streams=STREAMS, before=(lambda r: r.seed([Key(0, 2), Key(0, 3), Key(0, 1)], [3]),),
        others=((lambda r: r.seed([Key(0, 0), Key(0, 2), Key(5, 1)]), Runtime.settle,
                 lambda r: r.pin(Key(0, 2)), lambda r: r.unpin(Key(0, 2))),),
    ),
    "resizes": Program(
        ONE, Budget(slots=3), streams=STREAMS, loose=True,
        others=((_prefetch(0, 2), _resize(slots=2), _resize(slots=3), _resize(slots=2)),),
    ),
    "resets": Program(
        ONE, Budget(slots=3), streams=STREAMS[:1], loose=True,
        others=((lambda r: r.reset("history"), lambda r: r.reset("contents"), lambda r: r.reset("counters")),),
    ),
    "an engine that encodes ahead": Program(ONE, Budget(slots=3), streams=STREAMS[1:], others=((_ahead,),)),
    "closed meanwhile": Program(ONE, Budget(slots=2), streams=STREAMS, others=(CLOSING,)),
    "closed while staged and prefetching": Program(
        PAGES, Budget(slots=3), discipline="staged", streams=STREAMS[:1], others=((_prefetch(0, 2),), CLOSING),
    ),
}  # fmt: skip
"""What it is about to the program."""


def program(name: str, **changes: Any) -> Program:
    """The program, with some of its fields changed."""
    return attrs.evolve(PROGRAMS[name], **changes)
