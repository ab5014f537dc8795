"""The array form refuses every archive whose arrays do not belong together, before it loads them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from expertcache_reference.traces import bulk, bulk_read, open_trace, write_trace
from expertcache_spec.errors import InvalidTrace
from expertcache_spec.trace import Trace

from .files import CSV, put

Arrays = dict[str, Any]


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return open_trace(put(tmp_path / "t.csv", CSV))


def save(path: Path, arrays: Arrays, **options: Any) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            data = io.BytesIO()
            np.lib.format.write_array(data, np.asarray(array), version=(1, 0), **options)
            archive.writestr(f"{name}.npy", data.getvalue())
    return path


def test_numpy_reads_the_archive_without_pickles(trace: Trace, tmp_path: Path) -> None:
    write_trace(trace, tmp_path / "t.npz")
    with np.load(tmp_path / "t.npz", allow_pickle=False) as arrays:
        assert arrays["experts"].tolist() == [e for event in trace.events for row in event.rows for e in row]
        assert arrays["rows"].tolist() == [0, 2, 3, 4, 5, 6, 7]
        assert arrays["weights"].dtype == np.float64


def cut(name: str, count: int = 1) -> Callable[[Arrays], object]:
    return lambda arrays: arrays.__setitem__(name, arrays[name][:-count])


def put_at(name: str, index: int, value: Any) -> Callable[[Arrays], object]:
    return lambda arrays: arrays[name].__setitem__(index, value)


def grow(name: str, value: Any) -> Callable[[Arrays], object]:
    return lambda arrays: arrays.__setitem__(name, np.append(arrays[name], arrays[name].dtype.type(value)))


BAD: dict[str, tuple[Callable[[Arrays], object], str]] = {
    "streams too short": (cut("stream"), "arrays of events differ in length"),
    "layers too short": (cut("layer"), "arrays of events differ in length"),
    "row offsets too short": (cut("rows"), "arrays of events differ in length"),
    "selection offsets too short": (cut("ids"), "offsets rows do not rise from 0 to 6"),
    "no selection offsets": (lambda a: a.__setitem__("ids", a["ids"][:0]), "rows or recordings differ"),
    "experts too short": (cut("experts"), "offsets ids do not rise from 0 to 13"),
    "experts too long": (grow("experts", 1), "offsets ids do not rise from 0 to 15"),
    "negative offset": (put_at("ids", 1, -2), "offsets ids do not rise"),
    "offset beyond the end": (put_at("rows", 1, 1 << 40), "offsets rows do not rise"),
    "offsets that fall": (put_at("rows", 2, 1), "offsets rows do not rise"),
    "weights too short": (cut("weights"), "array weights is too short"),
    "weights too long": (grow("weights", 0.5), "array weights is too long"),
    "positions too short": (cut("positions"), "array positions is too short"),
    "recordings of two lengths": (cut("hit"), "rows or recordings differ"),
    "recordings too long": (lambda a: (grow("hit", 1)(a), grow("bytes", 1)(a)), "array hit is too long"),
    "a hit that is 2": (put_at("hit", 0, 2), "event 0: a hit that is neither 0 nor 1"),
    "unknown phase": (put_at("phase", 0, 3), "event 0: has 21, phase 3"),
    "unknown bit": (put_at("has", 0, 255), "event 0: has 255"),
    "negative id": (put_at("experts", 0, -1), "event 0: .*expert id -1"),
    "id out of range": (put_at("experts", 0, 9), "event 0: .*expert id 9"),
    "negative stream": (put_at("stream", 0, -1), "event 0: .*whole numbers from 0"),
    "negative position": (put_at("positions", 0, -1), "event 0: .*positions"),
    "NaN weight": (put_at("weights", 0, np.nan), "event 0: .*NaN"),
    "wrong layer": (put_at("layer", 1, 0), "event 1: .*expected pass 0 layer 1"),
    "empty row": (put_at("ids", 1, 0), "event 0: .*without experts"),
    "another type": (lambda a: a.__setitem__("experts", a["experts"].astype("<i4")), "array experts.npy is int32"),
    "another byte order": (lambda a: a.__setitem__("experts", a["experts"].astype(">i8")), "array experts.npy is >i8"),
    "two dimensions": (lambda a: a.__setitem__("experts", a["experts"].reshape(2, -1)),
                       r"experts.npy is int64 \(2, 7\)"),
    "an array missing": (lambda a: a.pop("hit"), "needed: header, stream"),
    "an array too many": (lambda a: a.__setitem__("extra", np.zeros(1)), "arrays .*extra"),
    "header that is no JSON": (lambda a: a.__setitem__("header", np.frombuffer(b"{", "u1")), "header: not strict JSON"),
    "header that is no UTF-8": (lambda a: a.__setitem__("header", np.frombuffer(b"\xff", "u1")), "not UTF-8"),
    "header of another version": (
        lambda a: a.__setitem__("header", np.frombuffer(a["header"].tobytes().replace(b'n": 1', b'n": 7'), "u1")),
        "header: trace format version 7"),
    "no events": (lambda a: a.update({name: a[name][: name in ("rows", "ids")] for name in a if name != "header"}),
                  "no events"),
}  # fmt: skip


@pytest.mark.rule("XC-TRACE-003", "XC-TRACE-004", "XC-TRACE-008")
@pytest.mark.parametrize("name", BAD)
def test_arrays_that_do_not_belong_together_are_refused(name: str, trace: Trace, tmp_path: Path) -> None:
    change, expected = BAD[name]
    arrays = bulk.columns(trace)
    change(arrays)
    path = save(tmp_path / "t.npz", arrays)
    with pytest.raises(InvalidTrace, match=expected) as caught:
        open_trace(path)
    assert caught.value.where.startswith(str(path))
    assert caught.value.cure


def test_pickled_objects_are_refused_unread(trace: Trace, tmp_path: Path) -> None:
    arrays = {**bulk.columns(trace), "experts": np.array([{"a": 1}], dtype=object)}
    with pytest.raises(InvalidTrace, match=r"experts\.npy is object"):
        open_trace(save(tmp_path / "t.npz", arrays, allow_pickle=True))


def test_an_array_that_announces_too_much_is_refused_unread(
    trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_trace(trace, tmp_path / "t.npz")
    monkeypatch.setattr(bulk_read, "MAX_BYTES", (tmp_path / "t.npz").stat().st_size)
    monkeypatch.setattr(bulk_read, "_array", pytest.fail)
    with pytest.raises(InvalidTrace, match="the arrays announce more than"):
        open_trace(tmp_path / "t.npz")
    monkeypatch.setattr(bulk_read, "MAX_BYTES", 100)
    with pytest.raises(InvalidTrace, match="the archive is larger than 100 bytes"):
        open_trace(tmp_path / "t.npz")


def test_a_header_that_announces_more_than_its_entry_holds_is_refused(trace: Trace, tmp_path: Path) -> None:
    arrays = bulk.columns(trace)
    path = tmp_path / "t.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            data = io.BytesIO()
            np.lib.format.write_array(data, array, version=(1, 0))
            text = data.getvalue()
            if name == "experts":
                text = text.replace(b"(14,), }      ", b"(1400000000,),}")[: len(text)]
                assert b"1400000000" in text
            archive.writestr(f"{name}.npy", text)
    with pytest.raises(InvalidTrace, match=r"experts\.npy is int64 \(1400000000,\)|no readable archive"):
        open_trace(path)


@pytest.mark.parametrize("keep", [4, 30, 500, -1, -30])
def test_a_truncated_archive_is_refused(keep: int, trace: Trace, tmp_path: Path) -> None:
    write_trace(trace, tmp_path / "whole.npz")
    path = tmp_path / "t.npz"
    path.write_bytes((tmp_path / "whole.npz").read_bytes()[:keep])
    with pytest.raises(InvalidTrace, match=r"t\.npz: no readable archive"):
        open_trace(path)


def test_a_damaged_entry_is_refused(trace: Trace, tmp_path: Path) -> None:
    write_trace(trace, tmp_path / "t.npz")
    data = bytearray((tmp_path / "t.npz").read_bytes())
    refused = 0
    for at in range(60, len(data) - 1, 97):
        broken = data[:]
        broken[at] ^= 0xFF
        (tmp_path / "t.npz").write_bytes(broken)
        try:
            again = open_trace(tmp_path / "t.npz")
        except InvalidTrace:
            refused += 1
        else:
            assert again == trace  # a byte that nobody reads, such as a time stamp
    assert refused > 10
