"""The traces that ship are exactly what the converter makes of the recorded files."""

from __future__ import annotations

import gzip
from importlib.resources import files
from pathlib import Path

import pytest

from expertcache_reference.traces import builtin, open_trace
from expertcache_spec.errors import UnknownName

from .files import GEMMA, QWEN
from .running import run

SOURCE = "github.com/Helldez/BigMoeOnEdge, commit 2d4f2b1"
CAPTURE = "streamed from flash on a phone with an expert cache of 4000 MiB, top-k forced to 6 (the model's own is 8)"
CHANGES = (
    "converted from route trace CSV to the canonical format; experts, weights, residency and bytes as recorded, "
    "steps as positions; dense_bytes left out"
)
SHIPPED = {"qwen3-30b-a3b": QWEN, "gemma-4-26b-a4b": GEMMA}


def command(name: str, source: Path, target: Path) -> list[object]:
    """How a shipped file was made: `expertcache` with these arguments."""
    facts = {"source": f"{SOURCE}, {source.name.removesuffix('.gz')}", "licence": "Apache-2.0", "capture": CAPTURE,
             "changes": CHANGES}  # fmt: skip
    about = [word for key, text in facts.items() for word in ("--about", f"{key}={text}")]
    return ["trace", "convert", source, target, "--name", name, *about]


def test_the_builtin_traces_are_listed() -> None:
    assert builtin.of_engines() == sorted(SHIPPED)
    assert set(builtin.names()) > set(SHIPPED)
    with pytest.raises(UnknownName, match="one of builtin:gemma-4-26b-a4b, builtin:qwen3-30b-a3b"):
        open_trace("builtin:mixtral")


@pytest.mark.rule("XC-TRACE-006", "XC-TRACE-007")
@pytest.mark.parametrize("name", SHIPPED)
def test_a_builtin_trace_is_the_conversion_of_the_recorded_file(name: str, tmp_path: Path) -> None:
    target = tmp_path / "again.jsonl.gz"
    ran = run(*command(name, SHIPPED[name], target))
    assert ran.code == 0, ran.err
    shipped = (files("expertcache_spec") / "data" / f"{name}.jsonl.gz").read_bytes()
    assert gzip.decompress(target.read_bytes()) == gzip.decompress(shipped)
    assert shipped[4:8] == b"\0\0\0\0"  # no time in the header
    trace = open_trace(f"builtin:{name}")
    assert trace == open_trace(target)
    assert trace.fingerprint == open_trace(SHIPPED[name]).fingerprint
    assert {"source", "licence", "changes"} <= set(trace.about)
    assert all(event.weights and event.positions and event.recorded for event in trace.events)
