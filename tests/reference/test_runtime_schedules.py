"""The runtime under many schedules: no wrong byte, no leak, no deadlock, no negative count, the log always legal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from expertcache_reference.system.seam import Machine
from expertcache_reference.system.simulated import exhaust, explore
from expertcache_reference.system.simulated import run as run_once
from expertcache_reference.system.simulated.schedules import Chance
from expertcache_spec.model import Budget, Key

from .runtime_menu import ONE, PROGRAMS, program
from .runtime_programs import Program, assert_clean, event, simulation, store

REFUSED = {"resets", "seeds and pins", "closed meanwhile", "closed while staged and prefetching"}
"""Programs whose callers are refused something under some schedules."""

DAILY, NIGHTLY = 10, 500
"""Schedules of each program: 220 a day, 11,000 at night."""


def _checked(found: Program, *, errors: bool) -> Any:
    def run(machine: Machine) -> None:
        assert_clean(found(machine), errors=errors)

    return run


def _explored(name: str, schedules: int, seed: int) -> int:
    found = PROGRAMS[name]
    seen = explore(
        _checked(found, errors=name in REFUSED), simulation(found.found), schedules=schedules, seed=seed
    )  # fmt: skip
    seen.check()
    return seen.schedules


@pytest.mark.rule("XC-RES-004", "XC-RES-010", "XC-RES-015", "XC-RES-017", "XC-HIST-007", "XC-HIST-008", "XC-HIST-011")
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_schedule_gives_the_right_bytes_and_a_legal_log(name: str) -> None:
    assert _explored(name, DAILY, seed=0) == DAILY


@pytest.mark.nightly
@pytest.mark.parametrize("name", PROGRAMS)
def test_ten_thousand_schedules_give_the_right_bytes_and_a_legal_log(
    name: str, record_property: Any, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    with _said(capsys, name, record_property):
        assert _explored(name, NIGHTLY, seed=1) == NIGHTLY


@contextmanager
def _said(capsys: pytest.CaptureFixture[str], name: str, record: Any) -> Iterator[None]:
    yield
    record("schedules", NIGHTLY)
    with capsys.disabled():
        print(f"\n{name}: {NIGHTLY} schedules")


TINY = {
    "two streams miss one record": Program(
        store(layers=1, experts=1, top_k=1), Budget(slots=1),
        streams=((event(0, 0),), (event(0, 0, stream=1),)), options={"workers": 1, "chunks": 1},
    ),
    "two streams want one slot": Program(
        store(layers=1, experts=2, top_k=1), Budget(slots=1),
        streams=((event(0, 0),), (event(0, 1, stream=1),)), options={"workers": 1, "chunks": 1},
    ),
    "a demand meets a prefetch": Program(
        store(layers=1, experts=1, top_k=1), Budget(slots=1), streams=((event(0, 0),),),
        others=((lambda runtime: runtime.prefetch(Key(0, 0)),),), options={"workers": 1, "chunks": 1},
    ),
    "closed while one serves": Program(
        store(layers=1, experts=1, top_k=1), Budget(slots=1), streams=((event(0, 0),),),
        others=((lambda runtime: runtime.close(),),), options={"workers": 1, "chunks": 1},
    ),
}  # fmt: skip


@pytest.mark.rule("XC-RES-027", "XC-RES-016", "XC-HIST-011")
@pytest.mark.parametrize("name", TINY)
def test_every_schedule_with_one_preemption_of_a_tiny_program_is_right(name: str) -> None:
    found = TINY[name]
    seen = exhaust(_checked(found, errors="closed" in name), simulation(found.found), preemptions=1, limit=20_000)
    seen.check()
    assert seen.complete
    assert seen.schedules > 10


@pytest.mark.nightly
@pytest.mark.parametrize("name", TINY)
def test_every_schedule_with_two_preemptions_of_a_tiny_program_is_right(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    found = TINY[name]
    seen = exhaust(_checked(found, errors="closed" in name), simulation(found.found), preemptions=2, limit=200_000)
    seen.check()
    assert seen.complete
    with capsys.disabled():
        print(f"\n{name}: all {seen.schedules} schedules")


def test_the_programs_do_what_they_are_about() -> None:
    """A search that never waits, joins, evicts or overlaps would prove nothing about waiting, joining or evicting."""
    ops, waits = set[str](), 0
    for name, found in PROGRAMS.items():
        for seed in range(3):
            outcome = run_once(found, Chance(f"about/{seed}"), simulation(found.found))
            assert outcome.finding is None, name
            for line in outcome.value["lines"][1:]:
                ops.add(line["op"] + line.get("how", line.get("state", "")))
        waits += name.startswith("two slots")
    wanted = {"missread", "missjoin", "missrefuse", "missdefer", "bypass", "evict", "refuse", "resume", "fail", "pin",
              "prefetchreading", "prefetchready", "prefetchlate", "prefetchadopted", "seedread", "seedpresent",
              "seedrefuse", "unpin", "resize", "reset"}  # fmt: skip
    assert wanted <= ops, wanted - ops


def test_a_stream_that_finds_no_room_waits_in_line() -> None:
    waits = []

    def run(machine: Machine) -> None:
        found = program("two slots, so that streams wait in line")
        waits.append(found(machine)["waits"])

    for seed in range(5):
        run_once(run, Chance(f"waits/{seed}"), simulation(ONE))
    assert any(waits)
