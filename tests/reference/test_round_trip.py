"""What is written and read again is the same trace, in both canonical forms."""

from __future__ import annotations

import tempfile
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given

from expertcache_reference.traces import TraceWarning, bulk, canonical, load_trace, open_trace, write_trace
from expertcache_spec.errors import InvalidModel
from expertcache_spec.trace import Trace

from .files import CSV, GEMMA, put, whole_traces

FORMS = ("trace.jsonl", "trace.jsonl.gz", "trace.npz")


@pytest.mark.rule("XC-TRACE-006", "XC-TRACE-007")
@given(trace=whole_traces())
def test_every_form_gives_back_the_trace_and_its_fingerprint_and_repeats_its_bytes(trace: Trace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for form in FORMS:
            path, second = Path(folder) / form, BytesIO()
            write_trace(trace, path)
            again, _ = load_trace(path)
            assert again == trace
            assert again.fingerprint == trace.fingerprint
            if form.endswith(".npz"):
                bulk.write(again, second)
            else:
                canonical.write(again, second, compress=form.endswith(".gz"))
            assert second.getvalue() == path.read_bytes()


@pytest.mark.rule("XC-TRACE-006", "XC-TRACE-007")
def test_a_real_trace_is_the_same_in_every_form(tmp_path: Path) -> None:
    trace = open_trace(GEMMA)
    for form in FORMS:
        write_trace(trace, tmp_path / form)
        assert open_trace(tmp_path / form) == trace
        without = open_trace(tmp_path / form, drop_weights=True)
        assert all(event.weights is None for event in without.events)
        assert [event.recorded for event in without.events] == [event.recorded for event in trace.events]


def test_record_sizes_given_by_the_caller_replace_those_of_the_file_with_a_warning(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", CSV)
    with pytest.warns(TraceWarning, match="records of 100, 300 bytes, and 5 bytes were given"):
        assert open_trace(path, record_bytes=5).geometry.record_bytes == (5, 5)
    with pytest.warns(TraceWarning, match="7, 8 bytes were given"):
        assert open_trace(path, record_bytes=[7, 8]).geometry.record_bytes == (7, 8)
    with pytest.raises(InvalidModel, match="list 2 whole numbers"):
        open_trace(path, record_bytes=[7, 8, 9])


def test_progress_is_told_in_bytes_of_the_file() -> None:
    told: list[tuple[int, int]] = []
    open_trace(GEMMA, progress=lambda done, total: told.append((done, total)))
    size = GEMMA.stat().st_size
    assert len(told) > 1
    assert all(0 < done <= total == size for done, total in told)
    assert told == sorted(told)
