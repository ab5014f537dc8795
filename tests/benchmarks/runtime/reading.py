"""A warm file read by a plain C loop, by fio, by the reader and by the runtime: same threads, same sizes, one run."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import attrs

from expertcache_reference.reader import Read, Reader
from expertcache_reference.runtime import Runtime, Work
from expertcache_reference.system import this_machine
from expertcache_spec.layout.kinds import packed_layers
from expertcache_spec.layout.placing import Layout, Shape
from expertcache_spec.model import Budget, Geometry
from expertcache_spec.trace import Event

PAGE = 16384
TOP_K = 8


class Spent(NamedTuple):
    """Seconds by the clock, and of all cores together."""

    wall: float
    cpu: float


@attrs.frozen(slots=False)
class Warm:
    """A store of one layer in a warm file. pages: of a record. threads, chunks: of every contender."""

    folder: Path
    pages: int
    experts: int
    threads: int
    chunks: int
    rounds: int
    slots: int = 2 * TOP_K
    parts: tuple[str, ...] = ("gate",)
    fingerprint: str = "warm"

    @property
    def size(self) -> int:
        """Bytes of a record."""
        return self.pages * PAGE

    @property
    def layout(self) -> Layout:
        """One file."""
        return packed_layers(Shape(self.experts, {0: dict.fromkeys(self.parts, self.size // len(self.parts))}))

    @property
    def geometry(self) -> Geometry:
        """One layer."""
        return Geometry(1, self.experts, TOP_K, (self.size,))

    @property
    def file(self) -> Path:
        """Where it lies."""
        return self.folder / next(iter(self.layout.files))

    def write(self) -> None:
        """Write it, and so warm it."""
        with self.file.open("wb") as file:
            for expert in range(self.experts):
                file.write(bytes([expert % 251]) * self.size)

    @property
    def bytes(self) -> int:
        """Read in all."""
        return self.rounds * self.experts * self.size


def compiled(folder: Path) -> Path | None:
    """The C loop; None where there is no compiler."""
    compiler = next(filter(None, map(shutil.which, ("clang", "cc", "gcc"))), None)
    if compiler is None:
        return None
    source, target = Path(__file__).with_name("loop.c"), folder / "loop"
    subprocess.run([compiler, "-O2", "-o", str(target), str(source), "-lpthread"], check=True)
    return target


def by_loop(loop: Path, warm: Warm, *, huge: bool = False) -> Spent:
    """The C loop, into memory as the system gives it, or in huge pages where it has any."""
    numbers = (warm.threads, warm.experts, warm.size, warm.chunks, warm.slots, PAGE, warm.rounds, int(huge))
    done = subprocess.run([str(loop), str(warm.file), *map(str, numbers)], check=True, capture_output=True, text=True)
    return Spent(*map(float, done.stdout.split()))


def by_fio(warm: Warm) -> Spent | None:
    """As many bytes by fio, in chunks of that size; None where it is not installed.

    Each of its threads reads the whole file, into one buffer of its own, which is kinder to the processor's caches than
    the ring of records of the others. Its percentages of CPU are those of one thread.
    """
    fio = shutil.which("fio")
    if fio is None:
        return None
    block = -(-warm.pages // warm.chunks) * PAGE
    done = subprocess.run(
        [fio, "--name=warm", f"--filename={warm.file}", "--rw=read", f"--bs={block}", "--ioengine=psync", "--thread",
         f"--numjobs={warm.threads}", "--group_reporting", "--output-format=json", f"--loops={warm.rounds}"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    job = json.loads(done.stdout)["jobs"][0]
    seconds = warm.bytes / job["read"]["bw_bytes"]
    return Spent(seconds, (job["usr_cpu"] + job["sys_cpu"]) / 100 * seconds * warm.threads)


@contextmanager
def timed() -> Iterator[list[Spent]]:
    """What the block spends, in its list when it is over."""
    found: list[Spent] = []
    wall, cpu = time.perf_counter(), time.process_time()
    yield found
    found.append(Spent(time.perf_counter() - wall, time.process_time() - cpu))


def by_reader(warm: Warm) -> Spent:
    """The reader by itself: a ring of destinations, and as many records under way as there are."""
    machine, places = this_machine(), list(warm.layout.extents.values())
    memory = machine.memory(warm.slots * warm.size)
    memory[:] = bytes(len(memory))
    with Reader(machine, warm.folder, warm.threads) as reader:
        flying: list[Read] = []
        with timed() as spent:
            for number in range(warm.rounds * warm.experts):
                at = number % warm.slots * warm.size
                if len(flying) == warm.slots:
                    flying.pop(0).wait()
                into = memory[at : at + warm.size]
                flying.append(reader.submit(number, places[number % warm.experts], into, warm.chunks))
            for read in flying:
                read.wait()
    return spent[0]


def by_runtime(warm: Warm) -> Spent:
    """The runtime: events of all misses, the next one selected before the one before is released, as engines do."""
    rows = [tuple(range(at, at + TOP_K)) for at in range(0, warm.experts, TOP_K)]
    with Runtime(
        warm, Budget(slots=warm.slots), discipline="sync", workers=warm.threads, chunks=warm.chunks
    ) as runtime:  # fmt: skip
        for number, row in enumerate(rows[-2:]):  # every slot is touched once before time is taken
            _end(runtime.serve(Event(0, (row,), 0, number)))
        with timed() as spent:
            before: Work | None = None
            for number, row in enumerate(rows * warm.rounds, 2):
                work = runtime.serve(Event(0, (row,), 0, number), ahead=True)
                if before is not None:
                    _end(before)
                before = work
            assert before is not None, "there are events"
            _end(before)
    return spent[0]


def _end(work: Work) -> None:
    for batch in work.batches():
        for key in batch.keys:
            work.record(key)
    work.release()
