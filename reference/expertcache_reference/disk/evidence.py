"""What is known of where the bytes of a run came from, and how a file is brought into a condition before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from expertcache_reference.system.seam import File, Machine, Mapping, Quality, Thread
from expertcache_spec.layout.extents import Extent
from expertcache_spec.pagecache import Temperature, temperature

Condition = Literal["cold", "past", "warm"]
"""How a run is prepared: its pages dropped; dropped, and read past the page cache; read once before."""
CONDITIONS: tuple[Condition, ...] = get_args(Condition)


class Evidence(NamedTuple):
    """Bytes, of one run; None where the machine does not say.

    application: asked for by the program. physical: asked of the device while it ran, in pages and with what was read
    ahead. resident: in the page cache just before. witness: of the first page of a record beside the run that was
    prepared alike, what a read that never waits for the device delivered.
    """

    application: int
    physical: int | None
    resident: int | None
    witness: int | None

    @property
    def state(self) -> Temperature:
        """What may be said of the run, by XC-PAGE-003; a witness that was warm speaks for the records beside it."""
        return temperature(self.application, self.physical, self.witness or self.resident)


class Target:
    """The file that is measured."""

    def __init__(self, machine: Machine, file: File, mapping: Mapping) -> None:
        self._machine, self._file, self._mapping = machine, file, mapping
        self.size = file.size()

    def prepare(self, extents: Sequence[Extent], condition: Condition) -> None:
        """Bring the pages of these records into the condition, as far as the system lets; no proof of anything.

        The whole file is dropped: systems cache in pieces larger than a page, and keep one that the range only grazes.
        """
        self._mapping.advise(0, self.size, "dont-need")
        self._file.advise(0, self.size, "dont-need")
        for extent in extents if condition == "warm" else ():
            self._read(extent)

    def _read(self, extent: Extent) -> None:
        memory, got = self._machine.memory(min(extent.length, 1 << 20)), 0
        while got < extent.length:
            part = memory[: extent.length - got]
            try:
                came = self._file.read_into(part, extent.offset + got)
            except InterruptedError:
                continue
            if not came:
                return  # the run itself will say that the file has ended
            got += came

    def resident(self, extents: Sequence[Extent]) -> int | None:
        """Bytes of them in the page cache."""
        found = [self._mapping.resident(extent.offset, extent.length) for extent in extents]
        return sum(each for each in found if each is not None) if None not in found else None

    def witness(self, extent: Extent) -> int | None:
        """What of its first page comes without waiting; asking may begin to read ahead, so it is no part of a run."""
        return self._file.read_warm(self._machine.memory(self._machine.page), extent.offset)


@contextmanager
def opened(machine: Machine, path: Path) -> Iterator[Target]:
    """The file for as long as the block lasts. Raises `OSError`."""
    file = machine.open(path)
    try:
        mapping = file.map()
        try:
            yield Target(machine, file, mapping)
        finally:
            mapping.close()
    finally:
        file.close()


class PastCache:
    """A machine whose files are read past the page cache, where there is a way."""

    def __init__(self, inner: Machine) -> None:
        self._inner = inner
        self.name, self.page, self.most_per_read = inner.name, inner.page, inner.most_per_read
        self.memory, self.now, self.usage = inner.memory, inner.now, inner.usage
        self.lock, self.condition = inner.lock, inner.condition

    def open(self, path: Path) -> File:
        """As `seam.Machine.open`."""
        file = self._inner.open(path)
        file.uncached(True)
        return file

    def spawn(self, name: str, run: Callable[[], None], quality: Quality = "demand") -> Thread:
        """As `seam.Machine.spawn`."""
        return self._inner.spawn(name, run, quality)
