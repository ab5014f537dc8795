"""The memory of a runtime beyond its budget and one event, as docs/runtime/runtime.md states it."""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.runtime import costs


def test_the_fixed_overhead_of_memory_is_a_fraction_of_a_mebibyte(tmp_path: Path) -> None:
    """A budget of 41.5 MiB, and as much for records that are not kept; the page says 0.2 MiB, measured."""
    assert costs.memory(tmp_path)["overhead"] < 2**19
