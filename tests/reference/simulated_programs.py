"""Small programs with one planted mistake each, and right ones, for the simulated machine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from expertcache_reference.system.seam import Machine, Thread

FILES = {"data": bytes(range(256)) * 64}


def joined(threads: list[Thread]) -> None:
    for thread in threads:
        thread.join()


def counting(locked: bool, threads: int = 2) -> Callable[[Machine], int]:
    """Threads that add one each to a number; without the lock an update can be lost."""

    def program(machine: Machine) -> int:
        lock, box = machine.lock() if locked else nullcontext(), [0]

        def add() -> None:
            with lock:
                seen = box[0]
                machine.now()
                box[0] = seen + 1

        joined([machine.spawn(f"adder {each}", add) for each in range(threads)])
        assert box[0] == threads
        return box[0]

    return program


def dining(ordered: bool) -> Callable[[Machine], None]:
    """Two threads that need two locks each; taken crosswise they can wait for each other for ever."""

    def program(machine: Machine) -> None:
        left, right = machine.lock(), machine.lock()

        def eat(first: object, second: object) -> None:
            with first, second:  # type: ignore[attr-defined]
                machine.now()

        orders = [(left, right), (left, right) if ordered else (right, left)]
        joined([machine.spawn(f"eater {n}", lambda order=order: eat(*order)) for n, order in enumerate(orders)])  # type: ignore[misc]

    return program


def signalling(rechecks: bool) -> Callable[[Machine], None]:
    """One waits for a flag that another sets; a waiter that looks before it holds the lock can miss the call."""

    def program(machine: Machine) -> None:
        lock, flag = machine.lock(), [False]
        condition = machine.condition(lock)

        def wait() -> None:
            if rechecks:
                with lock:
                    while not flag[0]:
                        condition.wait()
            elif not flag[0]:
                with lock:
                    condition.wait()

        thread = machine.spawn("waiter", wait)
        machine.now()
        with lock:
            flag[0] = True
            condition.notify()
        thread.join()

    return program


def releasing(everybody: bool) -> Callable[[Machine], None]:
    """Two threads wait for one gate; a single notification leaves one of them there."""

    def program(machine: Machine) -> None:
        lock, gate = machine.lock(), [False]
        condition = machine.condition(lock)

        def wait() -> None:
            with lock:
                while not gate[0]:
                    condition.wait()

        threads = [machine.spawn(f"waiter {each}", wait) for each in range(2)]
        with lock:
            gate[0] = True
            condition.notify_all() if everybody else condition.notify()
        joined(threads)

    return program


def trusting(rechecks: bool) -> Callable[[Machine], None]:
    """A consumer that takes a wake-up for a promise; another one, or a wake-up without cause, leaves the shelf bare."""

    def program(machine: Machine) -> None:
        lock = machine.lock()
        condition = machine.condition(lock)
        shelf: list[int] = []

        def take() -> None:
            with lock:
                if rechecks:
                    while not shelf:
                        condition.wait()
                elif not shelf:
                    condition.wait()
                shelf.pop()

        threads = [machine.spawn(f"taker {each}", take) for each in range(2)]
        for each in range(2):
            with lock:
                shelf.append(each)
                condition.notify_all()
        joined(threads)

    return program


def reading(waits: bool) -> Callable[[Machine], None]:
    """A helper reads; the main thread looks at the bytes, before or after the helper is done."""

    def program(machine: Machine) -> None:
        file, memory = machine.open(Path("data")), machine.memory(512)
        thread = machine.spawn("reader", lambda: [file.read_into(memory, 256), None][1])
        if waits:
            thread.join()
        seen = bytes(memory)
        if not waits:
            thread.join()
        file.close()
        assert seen == FILES["data"][256:768]

    return program


def pool(machine: Machine) -> int:
    """Three workers take eight reads from a queue: what a reader does, with about a hundred calls of the seam."""
    lock, done, jobs = machine.lock(), [0], list[int | None]()
    work = machine.condition(lock)
    file, memory = machine.open(Path("data")), machine.memory(8 * 256)

    def worker() -> None:
        while True:
            with lock:
                while not jobs:
                    work.wait()
                job = jobs.pop(0)
            if job is None:
                return
            assert file.read_into(memory[job * 256 : (job + 1) * 256], job * 256) == 256
            with lock:
                done[0] += 1

    threads = [machine.spawn(f"worker {each}", worker) for each in range(3)]
    for job in range(8):
        with lock:
            jobs.append(job)
            work.notify()
    with lock:
        jobs.extend([None] * 3)
        work.notify_all()
    joined(threads)
    file.close()
    assert memory == FILES["data"][: 8 * 256]
    return done[0]
