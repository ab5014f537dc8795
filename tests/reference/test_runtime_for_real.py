"""The runtime with the threads of the machine that runs this: many streams, one worker, a kill."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import textwrap
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from expertcache_reference.runtime import Runtime
from expertcache_reference.system import this_machine
from expertcache_spec.history import InvalidLog, check, read_log
from expertcache_spec.model import Budget, Key
from expertcache_spec.residency import Settings

from .runtime_programs import assert_legal, assert_sound, consume, event, store, verdict


@pytest.mark.rule("XC-RES-009", "XC-RES-010")
@pytest.mark.parametrize("discipline", ["split:1", "pipelined", "staged"])
@pytest.mark.parametrize("way", ["pread", "mmap"])
def test_eight_streams_at_once_see_their_own_bytes_only(discipline: str, way: Any, tmp_path: Path) -> None:
    found = store(
        layers=1, experts=16, top_k=2, parts={"gate": 4096, "up": 4096, "down": 8192}, folder=tmp_path
    ).write()
    lines: list[dict[str, Any]] = []
    wrong: list[BaseException] = []
    machine = this_machine()
    with Runtime(
        found, Budget(slots=4), discipline=discipline, workers=3, chunks=2, way=way, log=lines.append
    ) as runtime:  # fmt: skip

        def stream(number: int) -> None:
            chosen = random.Random(number)
            try:
                for at in range(40):
                    with runtime.serve(event(0, *chosen.sample(range(16), 2), stream=number, number=at)) as work:
                        consume(work, {})
                    runtime.prefetch(Key(0, chosen.randrange(16)))
            except BaseException as error:
                wrong.append(error)

        threads = [machine.spawn(f"stream-{number}", lambda number=number: stream(number)) for number in range(8)]  # type: ignore[misc]
        for thread in threads:
            thread.join()
        runtime.settle()
        assert wrong == []
        assert_sound(runtime, Budget(slots=4))
        assert runtime.report().hits + runtime.report().misses == 8 * 40 * 2
    assert_legal(lines)


def test_one_worker_serves_records_of_many_parts_beside_a_prefetch(tmp_path: Path) -> None:
    found = store(layers=1, experts=8, top_k=4, stacked=True, folder=tmp_path).write()
    with Runtime(found, Budget(slots=8), "lru", Settings(), "pipelined", workers=1, chunks=8) as runtime:
        runtime.prefetch(Key(0, 7))
        with runtime.serve(event(0, 0, 1, 2, 3)) as work:
            consume(work, {})
        runtime.settle()
        assert Key(0, 7) in runtime.resident()


KILLED = """
    import sys
    from pathlib import Path
    from tests.reference.runtime_programs import consume, event, store
    from expertcache_reference.runtime import Runtime
    from expertcache_spec.model import Budget

    folder = Path(sys.argv[1])
    found = store(layers=1, experts=4, folder=folder).write()
    with Runtime(found, Budget(slots=2), workers=2, log=folder / "log.jsonl") as runtime:
        for number in range(10**6):
            with runtime.serve(event(0, number % 4, (number + 1) % 4, number=number)) as work:
                consume(work, {})
            if number == 200:
                print("going", flush=True)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_killed_ends_at_once_and_leaves_a_log_that_is_legal_or_refused(
    how: signal.Signals, tmp_path: Path
) -> None:  # fmt: skip
    command = [sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=Path(__file__).parents[2],
        start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "going\n"
        process.send_signal(how)
        process.wait(timeout=20)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["layer_00.bin", "log.jsonl"]
    with (tmp_path / "log.jsonl").open("rb") as file:
        header, lines = read_log(file, "log")
        try:
            assert check(header, lines).answer == "legal"
        except InvalidLog:  # cut off: by a kill always, by Ctrl-C where it came in the middle of a step
            return
        assert how == signal.SIGINT


@pytest.mark.rule("XC-HIST-011")
@pytest.mark.parametrize("op", ["select", "read_start", "compute_start", "compute_end", "combine", "release"])
def test_a_run_interrupted_beside_any_line_leaves_a_log_that_is_legal_or_cut_off(op: str, tmp_path: Path) -> None:
    """The interruption comes when the line is written, and what it stands for may or may not have been noted."""
    found, main, seen = store(layers=1, experts=4, folder=tmp_path).write(), threading.get_ident(), 0
    for place in range(2, 40):
        lines: list[dict[str, Any]] = []
        fired: list[int] = []

        def sink(line: dict[str, Any], lines: Any = lines, fired: Any = fired, place: int = place) -> None:
            lines.append(line)
            if not fired and len(lines) >= place and line.get("op") == op and threading.get_ident() == main:
                fired.append(len(lines))
                raise KeyboardInterrupt

        with suppress(KeyboardInterrupt), Runtime(found, Budget(slots=2), workers=1, log=sink) as runtime:
            for number in range(6):
                with runtime.serve(event(0, number % 4, (number + 1) % 4, number=number)) as work:
                    consume(work, {})
        seen += len(fired)
        judged = verdict(lines)
        assert judged.answer == "legal" or (judged.rule, judged.what) == ("XC-HIST-011", "the log does not end"), judged
    assert seen > 30 or op == "read_start", "a worker writes those"
