"""The runtime as an implementation: it conforms, and runtimes with one fault are caught by the rule that they break."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from expertcache_conformance.adapters import load
from expertcache_conformance.rundown import Rundown, cases, examine

from .runtime_faults import FAULTS

NAME = "expertcache_reference.runtime.impl"
DAILY = (
    "what_is_not_kept", "legal[split]", "no_speculation_starts", "leaves_nothing_behind", "waits",
    "cut_by_its_own_size", "[flat-blobs]",
)  # fmt: skip
"""What it meets every day; at night it meets everything."""


def run(*wanted: str) -> Rundown:
    return examine(load(NAME), only=lambda case: not wanted or any(part in case.name for part in wanted))


def check(found: Rundown) -> None:
    assert not found.broken, "\n\n".join(each.text() for each in found.broken.values())
    assert not found.crashed
    assert not found.not_judged


@pytest.mark.rule("XC-BYTES-001", "XC-BYTES-002", "XC-SCHED-005", "XC-SCHED-014")
def test_the_runtime_conforms() -> None:
    found = run(*DAILY)
    check(found)
    assert len(found.passed) >= len(DAILY)
    assert not [name for name in found.not_claimed if "test_bytes" in name]


@pytest.mark.nightly
def test_the_runtime_conforms_to_all_that_it_claims() -> None:
    found = run()
    check(found)
    assert len(found.passed) > 100
    assert {"schedule", "chunks", "layout", "bytes"} <= set(load(NAME).profile.capabilities)


broken = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""What is broken may not be closed in good order."""


def caught(name: str) -> None:
    """Exactly its rules are found, by one test of the suite; a crash is what the simulated machine finds in memory."""
    fault = FAULTS[name]
    assert sum(fault.case in case.name for case in cases()) == 1
    with ExitStack() as stack:
        for each in fault.patches:
            stack.enter_context(each)
        found = run(fault.case)
    broken_down = [said for said in found.crashed.values() if "simulated run: memory" not in said]
    assert not broken_down, "the fault itself breaks down"
    assert set(found.broken) == fault.rules, [each.text() for each in found.broken.values()]


@broken
@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.daily])
def test_a_faulty_runtime_is_caught_by_the_suite(name: str) -> None:
    caught(name)


@broken
@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if not fault.daily])
def test_other_faulty_runtimes_are_caught_by_the_suite(name: str) -> None:
    caught(name)


def test_ten_faults_or_more_are_caught_by_the_suite() -> None:
    assert len({fault.patches for fault in FAULTS.values()}) >= 10
    assert len(frozenset[str]().union(*(fault.rules for fault in FAULTS.values()))) >= 10
