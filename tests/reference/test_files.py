"""Files that are no traces: missing, damaged, endless, of no known format. Memory stays bounded."""

from __future__ import annotations

import gzip
import io
import os
import tracemalloc
import zlib
from pathlib import Path

import pytest

from expertcache_reference.traces import FORMATS, lines, open_trace, stream_trace
from expertcache_spec.errors import InvalidTrace, UnknownName

from .files import CSV, QWEN, dumped, jsonl_records, put, request

GOOD = {"t.csv": CSV, "t.jsonl": dumped(jsonl_records()), "requests.jsonl": dumped([request()])}


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("as_name", ["plain.txt", "packed.gz", "wrong.npz"])
def test_the_format_is_found_by_content_whatever_the_suffix(name: str, as_name: str, tmp_path: Path) -> None:
    known = open_trace(put(tmp_path / name, GOOD[name]))
    assert open_trace(put(tmp_path / as_name, GOOD[name])).fingerprint == known.fingerprint


@pytest.mark.parametrize("text", ["hello\n", "turn\n", "{}\n", '{"stream":0}\n', "[1]\n", "\x7fELF"])
def test_an_unknown_format_is_refused_with_the_list_of_formats(text: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidTrace, match="no known trace format") as caught:
        open_trace(put(tmp_path / "t.jsonl", text))
    assert all(name in caught.value.cure for name in FORMATS)


@pytest.mark.parametrize("form", ["auto", *(name for name in FORMATS if name != "npz")])
@pytest.mark.parametrize("as_name", ["plain.txt", "packed.gz"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16-le", "utf-16-be"])
def test_a_byte_order_mark_is_named_with_the_cure(encoding: str, as_name: str, form: str, tmp_path: Path) -> None:
    for text in GOOD.values():
        marked = text if encoding == "utf-8-sig" else "\ufeff" + text
        with pytest.raises(InvalidTrace, match=r":1: the file begins with a UTF-(8|16) byte-order mark") as caught:
            open_trace(put(tmp_path / as_name, marked.encode(encoding)), format=form)
        assert "UTF-8 without" in caught.value.cure


def test_a_format_that_does_not_exist_is_refused_with_the_list() -> None:
    with pytest.raises(UnknownName, match=r"auto, jsonl, npz, bigmoe-on-edge, gpt-oss"):
        open_trace(QWEN, format="csv")


@pytest.mark.parametrize("form", ["jsonl", "npz", "gpt-oss"])
def test_a_file_of_another_format_than_stated_is_refused(form: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidTrace, match=r"t\.csv"):
        open_trace(put(tmp_path / "t.csv", CSV), format=form)


@pytest.mark.parametrize("form", ["auto", *FORMATS])
def test_an_empty_file_is_refused(form: str, tmp_path: Path) -> None:
    for name in ("t", "t.gz"):
        with pytest.raises(InvalidTrace, match=r"empty|no readable archive"):
            open_trace(put(tmp_path / name, ""), format=form)


def test_a_missing_file_a_directory_and_a_forbidden_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidTrace, match="No such file") as caught:
        open_trace(tmp_path / "none.jsonl")
    assert caught.value.where == str(tmp_path / "none.jsonl")
    with pytest.raises(InvalidTrace, match="directory"):
        open_trace(tmp_path)


def test_a_forbidden_file_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", CSV)
    path.chmod(0)
    user = os.geteuid()
    if user == 0:
        tmp_path.chmod(0o755)
        os.seteuid(65534)  # the superuser may read everything
    try:
        with pytest.raises(InvalidTrace, match="Permission denied"):
            open_trace(path)
    finally:
        os.seteuid(user)


@pytest.mark.parametrize("cut", [1, 8, 9, 200, 5000])
def test_a_truncated_gzip_is_refused(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(QWEN.read_bytes()[:-cut])
    with pytest.raises(InvalidTrace, match=r"t\.csv\.gz:\d+: the gzip data ends too early"):
        open_trace(path)


@pytest.mark.parametrize("at", [2, 3, 500, 20_000, -8])
def test_a_corrupt_gzip_is_refused(at: int, tmp_path: Path) -> None:
    data = bytearray(QWEN.read_bytes())
    data[at] ^= 0xFF
    path = tmp_path / "t.csv.gz"
    path.write_bytes(data)
    with pytest.raises(InvalidTrace, match=r"t\.csv\.gz:\d+") as caught:
        open_trace(path)
    assert caught.value.cure


def test_garbage_after_a_gzip_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(CSV.encode()) + b"garbage")
    with pytest.raises(InvalidTrace, match="the gzip data is damaged"):
        open_trace(path)


@pytest.mark.parametrize("name", GOOD)
def test_nul_bytes_and_other_encodings_are_refused(name: str, tmp_path: Path) -> None:
    text = GOOD[name].encode()
    middle = text.rindex(b"0", 0, len(text) - 20)
    with pytest.raises(InvalidTrace, match=r":\d+: NUL bytes"):
        open_trace(put(tmp_path / name, text[:middle] + b"\0" + text[middle:]))
    with pytest.raises(InvalidTrace, match=r":\d+: not UTF-8 at byte \d+"):
        open_trace(put(tmp_path / name, text[:middle] + b"\xff" + text[middle:]))


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz", "t.csv"])
def test_a_line_without_end_is_refused_and_not_read_on(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "MAX_LINE", 1 << 16)
    start = CSV if name == "t.csv" else dumped(jsonl_records()[:2])
    path = put(tmp_path / name, start + '{"stream":' + "0" * 50_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidTrace, match=rf":{start.count(chr(10)) + 1}: no end of line within 65536 bytes"):
            open_trace(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3_000_000


def test_the_cap_on_a_line_is_64_mib() -> None:
    assert lines.MAX_LINE == 64 * 2**20


def test_a_gzip_bomb_is_stopped_at_the_cap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE", 1 << 20)
    packer = zlib.compressobj(wbits=31)
    bomb = b"".join([packer.compress(b"# route_trace v1" + b" " * (1 << 20)), *[packer.compress(b" " * (1 << 24))] * 1])
    path = tmp_path / "t.csv.gz"
    path.write_bytes(bomb + packer.flush())
    with pytest.raises(InvalidTrace, match="no end of line within 1048576 bytes"):
        open_trace(path)


@pytest.mark.rule("XC-TRACE-002")
def test_streaming_needs_memory_for_one_event_not_for_all(tmp_path: Path) -> None:
    """Ten times the events, the same peak."""

    def peak(tokens: int) -> int:
        text = io.StringIO()
        for number in range(tokens):
            text.write(dumped([request(str(number), tokens=4)]))
        path = put(tmp_path / f"{tokens}.jsonl", text.getvalue())
        tracemalloc.start()
        try:
            with stream_trace(path) as reading:
                assert sum(1 for _ in reading.events) == tokens * 4 * 24
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    few, many = peak(10), peak(100)
    assert many < 1.5 * few + 100_000
