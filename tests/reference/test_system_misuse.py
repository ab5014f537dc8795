"""Misuse of the seam is found and said in words; a block and Ctrl-C end every thread."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from expertcache_reference.system.simulated import (
    Chance,
    Device,
    Replay,
    RunFailed,
    SimulatedMachine,
    Simulation,
    exhaust,
    run,
    simulated,
)

from .simulated_programs import FILES, dining, joined, pool

FILED = Simulation(FILES)


def use_twice(machine: SimulatedMachine) -> None:
    lock = machine.lock()
    with lock, lock:
        pass


def wait_outside(machine: SimulatedMachine) -> None:
    machine.condition(machine.lock()).wait()


def notify_outside(machine: SimulatedMachine) -> None:
    machine.condition(machine.lock()).notify()


def leave_untaken(machine: SimulatedMachine) -> None:
    machine.lock().__exit__(None, None, None)


def forget_a_thread(machine: SimulatedMachine) -> None:
    machine.spawn("forgotten", lambda: [machine.now(), None][1])


def forget_a_waiting_thread(machine: SimulatedMachine) -> None:
    lock = machine.lock()
    condition = machine.condition(lock)

    def wait() -> None:
        with lock:
            condition.wait()

    machine.spawn("forgotten", wait)
    machine.spend(5)


def forget_a_file(machine: SimulatedMachine) -> None:
    machine.open(Path("data"))


def forget_a_mapping(machine: SimulatedMachine) -> None:
    file = machine.open(Path("data"))
    file.map()
    file.close()


def close_under_a_view(machine: SimulatedMachine) -> None:
    file = machine.open(Path("data"))
    mapping = file.map()
    view = mapping.view[:1]
    file.close()
    mapping.close()
    assert view


def close_twice(machine: SimulatedMachine) -> None:
    file = machine.open(Path("data"))
    file.close()
    file.close()


def close_under_a_read(machine: SimulatedMachine) -> None:
    file, memory = machine.open(Path("data")), machine.memory(16)
    thread = machine.spawn("reader", lambda: [file.read_into(memory, 0), None][1])
    machine.spend(1)
    file.close()
    thread.join()


def read_into_a_busy_slot(machine: SimulatedMachine) -> None:
    file, memory = machine.open(Path("data")), machine.memory(64)
    threads = [
        machine.spawn("reader", lambda at=at: [file.read_into(memory[at : at + 32], 0), None][1]) for at in (0, 31)
    ]  # type: ignore[misc]
    joined(threads)
    file.close()


def read_before_the_start(machine: SimulatedMachine) -> None:
    file = machine.open(Path("data"))
    file.read_into(machine.memory(1), -1)


def ask_for_negative_memory(machine: SimulatedMachine) -> None:
    machine.memory(-1)


def go_back_in_time(machine: SimulatedMachine) -> None:
    machine.spend(-1)


def let_an_error_escape(machine: SimulatedMachine) -> None:
    def fail() -> None:
        raise KeyError("lost")

    machine.spawn("careless", fail).join()


def join_oneself(machine: SimulatedMachine) -> None:
    threads: list[Any] = []
    threads.append(machine.spawn("introvert", lambda: threads[0].join()))
    threads[0].join()


def never_end(machine: SimulatedMachine) -> None:
    while True:
        machine.now()


@pytest.mark.parametrize(
    ("program", "kind", "words"),
    [
        (use_twice, "lock", "main takes lock 1 a second time"),
        (wait_outside, "lock", "main waits on condition 1 of lock 1 of lock 1 without holding it"),
        (notify_outside, "lock", "main notifies condition 1 of lock 1 of lock 1 without holding it"),
        (leave_untaken, "lock", "main leaves lock 1 without holding it"),
        (forget_a_thread, "leaked-thread", "at the end of main: forgotten"),
        (forget_a_waiting_thread, "leaked-thread", "forgotten (condition 1 of lock 1 to be notified)"),
        (forget_a_file, "open-file", "left open: data"),
        (forget_a_mapping, "open-file", "left open: the mapping of data"),
        (close_under_a_view, "exception", "a view of the mapping of data is in use"),
        (close_twice, "open-file", "main uses data after closing it"),
        (close_under_a_read, "open-file", "closes data while a read of it is under way"),
        (read_into_a_busy_slot, "memory", "reads into memory that another read is writing"),
        (read_before_the_start, "arguments", "main goes to byte -1 of data"),
        (ask_for_negative_memory, "arguments", "main asks for -1 bytes of memory"),
        (go_back_in_time, "arguments", "main would have -1 ns pass"),
        (let_an_error_escape, "exception", "careless let KeyError('lost') escape"),
        (join_oneself, "deadlock", "main waits for the end of introvert; introvert waits for the end of introvert"),
        (never_end, "endless", "main is one of 1 threads still at work after 2000 calls"),
    ],
)
def test_each_misuse_is_found_and_said_in_words(program: Callable[[Any], Any], kind: str, words: str) -> None:
    before = threading.active_count()
    found = exhaust(program, Simulation(FILES, device=Device(latency=100), most_steps=2000), limit=50)
    assert found.failure is not None
    assert found.failure.finding is not None
    assert found.failure.finding.kind == kind
    assert words in found.failure.finding.what
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join(5)
    assert threading.active_count() <= before


def test_a_deadlock_says_who_waits_for_what() -> None:
    found = exhaust(dining(False))
    assert found.failure is not None
    assert found.failure.finding is not None
    assert found.failure.finding.what == (
        "main waits for the end of eater 0; eater 0 waits for lock 2, held by eater 1; "
        "eater 1 waits for lock 1, held by eater 0"
    )


# ---------------------------------------------------------------------------------------------- a block, and Ctrl-C


def test_a_block_on_a_simulated_machine_fails_at_its_end_and_lets_errors_through() -> None:
    with pytest.raises(RunFailed, match="left open: data"), simulated(FILED) as machine:
        machine.open(Path("data"))
    with pytest.raises(RunFailed, match="a second time"), simulated(FILED) as machine:
        use_twice(machine)
    with pytest.raises(ZeroDivisionError), simulated(FILED) as machine:
        machine.spend(1 // 0)
    with simulated(FILED, Chance(5)) as machine:
        assert pool(machine) == 8


def test_an_interrupt_unwinds_every_thread_and_goes_on_up() -> None:
    unwound = []

    def program(machine: SimulatedMachine) -> None:
        lock = machine.lock()
        condition = machine.condition(lock)

        def work() -> None:
            try:
                machine.now()
                os.kill(os.getpid(), signal.SIGINT)
                while True:
                    machine.now()
            finally:
                unwound.append("worker")

        def wait() -> None:
            try:
                with lock:
                    condition.wait()
            finally:
                unwound.append("waiter")

        threads = [machine.spawn("waiter", wait), machine.spawn("worker", work)]
        try:
            joined(threads)
        finally:
            unwound.append("main")

    with pytest.raises(KeyboardInterrupt):
        run(program, Replay(()), Simulation(most_steps=10**9))
    assert sorted(unwound) == ["main", "waiter", "worker"]
