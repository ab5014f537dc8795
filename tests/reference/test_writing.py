"""A file is written whole or not at all, and never over another one unasked."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path
from typing import Any

import pytest

from expertcache_reference.traces import CannotWrite, bulk, canonical, open_trace, write_trace
from expertcache_spec.errors import UnknownName
from expertcache_spec.trace import Trace, decode_trace

TRACE = decode_trace([[0, 1], [2, 1]])


def inside(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


FORMS = ["t.jsonl", "t.jsonl.gz", "t.npz"]


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_exists_is_kept_unless_forced(form: str, tmp_path: Path) -> None:
    path = tmp_path / form
    path.write_bytes(b"precious")
    with pytest.raises(CannotWrite, match=r"the file exists.*--force"):
        write_trace(TRACE, path)
    assert path.read_bytes() == b"precious"
    write_trace(TRACE, path, force=True)
    assert open_trace(path) == TRACE
    assert inside(tmp_path) == [form]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError, OSError(28, "No space left on device")])
@pytest.mark.parametrize("form", FORMS)
def test_an_error_or_interrupt_leaves_the_folder_as_it_was(
    form: str, error: type[BaseException] | OSError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(trace: Trace, file: object, **_: object) -> None:
        file.write(b"half")  # type: ignore[attr-defined]
        assert len(inside(tmp_path)) == 2  # the old file and the temporary one
        raise error

    (tmp_path / form).write_bytes(b"old")
    monkeypatch.setattr(canonical, "write", half)
    monkeypatch.setattr(bulk, "write", half)
    expected = CannotWrite if isinstance(error, OSError) else error
    with pytest.raises(expected):
        write_trace(TRACE, tmp_path / form, force=True)
    assert inside(tmp_path) == [form]
    assert (tmp_path / form).read_bytes() == b"old"


def test_a_file_that_appears_meanwhile_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.jsonl"
    monkeypatch.setattr(canonical, "write", lambda *_, **__: path.write_bytes(b"someone else's"))
    with pytest.raises(CannotWrite, match="the file exists"):
        write_trace(TRACE, path)
    assert path.read_bytes() == b"someone else's"
    assert inside(tmp_path) == ["t.jsonl"]


def test_the_data_is_synced_before_the_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    sync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda number: (calls.append("sync"), sync(number))[1])
    monkeypatch.setattr(Path, "replace", lambda self, to: (calls.append("rename"), replace(self, to))[1])
    write_trace(TRACE, tmp_path / "t.jsonl")
    assert calls == ["sync", "rename", "sync"]


@pytest.mark.parametrize(
    ("name", "to"), [("t.txt", ""), ("t.npz", "jsonl"), ("t.jsonl", "npz"), ("t", "csv"), ("t.gz", "")]
)
def test_a_format_that_is_unknown_or_disagrees_with_the_suffix_is_refused(name: str, to: str, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="one of jsonl, npz"):
        write_trace(TRACE, tmp_path / name, to=to)
    assert inside(tmp_path) == []


def test_a_folder_that_does_not_exist_or_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotWrite, match="No such file"):
        write_trace(TRACE, tmp_path / "none" / "t.jsonl")
    (tmp_path / "t.jsonl").mkdir()
    with pytest.raises(CannotWrite, match="is a directory"):
        write_trace(TRACE, tmp_path / "t.jsonl", force=True)


def test_a_written_file_has_the_permissions_that_the_user_asked_for(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_trace(TRACE, tmp_path / "t.jsonl")
    finally:
        os.umask(before)
    assert (tmp_path / "t.jsonl").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("force", [False, True])
def test_a_pipe_or_a_socket_is_not_replaced_by_a_file(force: bool, tmp_path: Path, monkeypatch: Any) -> None:
    """Nor is a device: a rename over `/dev/full` would leave the machine without it."""
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    os.mkfifo("pipe.jsonl")
    (tmp_path / "link.jsonl").symlink_to("pipe.jsonl")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("socket.jsonl")
        before = {name: (tmp_path / name).lstat() for name in inside(tmp_path)}
        for name in before:
            with pytest.raises(CannotWrite, match=r"no regular file.*Cure"):
                write_trace(TRACE, name, force=force)
    assert {name: (tmp_path / name).lstat() for name in inside(tmp_path)} == before
    assert stat.S_ISFIFO(before["pipe.jsonl"].st_mode)
    assert len(before) == 3


def test_a_symbolic_link_stays_and_the_file_that_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    file, link = tmp_path / "far" / "t.jsonl", tmp_path / "link.jsonl"
    file.write_bytes(b"old")
    link.symlink_to(Path("far") / "t.jsonl")
    with pytest.raises(CannotWrite, match="the file exists"):
        write_trace(TRACE, link)
    write_trace(TRACE, link, force=True)
    assert link.is_symlink()
    assert open_trace(file) == TRACE
    assert inside(tmp_path / "far") == ["t.jsonl"]


@pytest.mark.parametrize("force", [False, True])
def test_a_symbolic_link_to_nothing_is_refused(force: bool, tmp_path: Path) -> None:
    (tmp_path / "link.jsonl").symlink_to("none.jsonl")
    with pytest.raises(CannotWrite, match="a symbolic link to nothing"):
        write_trace(TRACE, tmp_path / "link.jsonl", force=force)
    assert inside(tmp_path) == ["link.jsonl"]


def test_a_folder_that_is_a_file_and_a_name_that_is_too_long_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "file" / "t.jsonl", tmp_path / ("x" * 300 + ".jsonl")):
        with pytest.raises(CannotWrite, match="cannot write the file"):
            write_trace(TRACE, path)
    (tmp_path / "loop.jsonl").symlink_to("loop.jsonl")
    with pytest.raises(CannotWrite):
        write_trace(TRACE, tmp_path / "loop.jsonl", force=True)
    assert sorted(inside(tmp_path)) == ["file", "loop.jsonl"]
