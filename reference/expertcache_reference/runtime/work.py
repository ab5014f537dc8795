"""Work: one event from its selection until the work on it has executed."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType

from expertcache_reference.reader import ReadFailed
from expertcache_reference.runtime.batches import Batch, Step, steps, without
from expertcache_reference.runtime.core import Core
from expertcache_reference.runtime.wave import Wave
from expertcache_spec.errors import WrongState
from expertcache_spec.model import Key
from expertcache_spec.residency import Ended
from expertcache_spec.schedule.disciplines import Discipline
from expertcache_spec.trace import Event


class Work:
    """An event being served; `Runtime.serve` makes it. Use it as a context: the lease ends with the block.

    for batch in work.batches():
        for key in batch.keys:
            results[key] = compute(work.record(key))

    Where work is only queued (`ahead`), leave the block out and call `release` when it has executed.
    """

    def __init__(self, core: Core, discipline: Discipline, wave: Wave, tokens: int, *, ahead: bool) -> None:
        self.event: Event = wave.selection.event
        self._core, self._discipline, self.wave = core, discipline, wave
        self._tokens, self._ahead = tokens, ahead
        self._failed: dict[Key, ReadFailed] = {}
        self._begun = self._released = False

    @property
    def failed(self) -> dict[Key, ReadFailed]:
        """The records whose reads have failed so far, with what was wrong."""
        return {**self._failed, **self.wave.failed}

    # ------------------------------------------------------------------------------------------ bytes

    def record(self, key: Key) -> memoryview:
        """The record's bytes, read only, valid until the lease ends; `batches` has said that they are there.

        An array made of it (`numpy.frombuffer`) lives on beyond the lease, while its slot gets the bytes of another
        record: copy it, or drop it before. Raises `WrongState` for any other key: nobody sees bytes of another record,
        or half of one.
        """
        return self.wave.view(key, None)

    def part(self, key: Key, name: str) -> memoryview:
        """The bytes of one part of the record, as `record`; the parts of gate and up as soon as their batch is due."""
        return self.wave.view(key, name)

    def batches(self) -> Iterator[Batch]:
        """The event's work in the order and grouping of the discipline; it sleeps for a batch's own bytes only.

        To ask for the next batch is to say that the work on the one before has executed; under `ahead` it is not, but
        for the last batch of a wave. Records whose reads fail are left out, and the first of their errors is raised
        when all others have been handed out: they are resident, and a retry reads what is lacking. Between waves it
        may stand in line for room, and raises as `Runtime.serve` does; the event is over then.
        """
        if self._begun or self._released:
            raise WrongState("the batches were handed out", where="work", cure="ask for them once an event")
        self._begun = True
        while True:
            yield from self._of_wave()
            if not self.wave.selection.deferred:
                break
            self.end_wave()
            self.resume()
        failed = self.failed
        first = next((key for key in self.event.keys if key in failed), None)
        if first is not None:
            raise failed[first].fresh()

    def _of_wave(self) -> Iterator[Batch]:
        wave = self.wave
        found = steps(self._discipline, wave.keys, wave.missing, wave.stream, self._tokens, wave.entries)
        pipelined = len(found) > 1 and found[-1].needs == "own"
        while found:
            batch = self._due(found) if pipelined else self._wait(found.pop(0))
            batch = without(batch, wave.failed)
            if any(batch):
                wave.hand_out(batch)
                yield batch
                if not self._ahead:
                    wave.executed(batch.down)

    def _wait(self, step: Step) -> Batch:
        """The next batch, when its bytes are there."""
        wave, batch, needs = self.wave, step.batch, step.needs
        if needs == "gate_up":
            wave.wait(lambda: all(wave.has_first(key) for key in batch.gate_up))
        elif needs != "nothing":
            wave.wait(lambda: not wave.pending)
        return batch

    def _due(self, found: list[Step]) -> Batch:
        """Of the batches of pipelined, the first whose record is there."""
        wave = self.wave

        def due() -> Step | None:
            return next((s for s in found if s.needs == "nothing" or wave.pending.isdisjoint(s.batch.keys)), None)

        wave.wait(lambda: due() is not None)
        step = due()
        assert step is not None, "it was waited for, and no record is taken back"
        found.remove(step)
        return step.batch

    # ------------------------------------------------------------------------------------------ the end

    def end_wave(self, *, last: bool = False) -> Ended:
        """The wave's work has executed: end its lease. `batches` does it where more waves follow."""
        self._released = True
        ended = self.wave.end(last=last)
        self._failed |= self.wave.failed
        return ended

    def resume(self) -> None:
        """Have the keys selected that the wave before has left. `batches` does it too."""
        core, before = self._core, self.wave
        with core.lock:
            core.check_open("serve")
            waits = not core.holds(self.event.stream)
            self.wave = core.line(self.event.layer).enter(lambda: Wave.resume(core, before.selection), may_wait=waits)
        self._released = False

    def release(self) -> None:
        """The work has executed: the lease ends, views of its records end. It waits for reads that are under way.

        Raises `WrongState` the second time.
        """
        if self._released:
            raise WrongState("the event was released", where="work", cure="release each event once")
        self.end_wave(last=True)

    def __enter__(self) -> Work:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:  # fmt: skip
        if not self._released:
            self.release()
