"""Packing that is killed, refused by the disk or doubled: the product is absent or whole, and can be continued."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from expertcache_reference.stores import KINDS, FileStore, open_store, pack, verify
from expertcache_reference.stores.disk import Disk, rename_exclusively
from expertcache_reference.stores.work import Work, work_folder
from expertcache_reference.traces.atomic import CannotWrite
from expertcache_spec.errors import UnknownName
from expertcache_spec.layout.files import WrongFile

from .models import Quick, mlx, weights
from .running import ROOT, run

CHANGES = ("make_folder", "open", "resize", "write", "sync", "sync_folder", "rename", "remove_empty", "remove")


class Killed(BaseException):
    """The end of the process: nothing that comes after it is done."""


class Failing(Disk):
    """A disk on which the call number `at` that changes something ends as `end` says; it remembers its calls.

    With `dead` nothing is done after it, as in a process that was killed; `share` is what of the call is done: 0
    nothing, 1 all, in between the first part of a write.
    """

    def __init__(self, at: int, end: BaseException, share: float = 0, dead: bool = False) -> None:
        self.at, self.end, self.share, self.dead = at, end, share, dead
        self.calls: list[str] = []
        self._ended = False
        self._opened: list[int] = []
        for name in CHANGES:
            setattr(self, name, partial(self._call, name, getattr(self, name)))

    def _call(self, name: str, real: Callable[..., Any], *arguments: Any) -> Any:
        self.calls.append(name)
        if self._ended and self.dead:
            raise Killed
        if len(self.calls) == self.at:
            self._ended = True
            if name == "write" and 0 < self.share < 1:
                file, data, offset = arguments
                real(file, data[: max(1, int(len(data) * self.share))], offset)
            elif self.share == 1:
                real(*arguments)
            raise self.end
        if name.startswith("sync"):
            return None
        found = real(*arguments)
        if name == "open":
            self._opened.append(found)
        return found

    def close(self, file: int) -> None:
        if not (self._ended and self.dead):
            self._opened.remove(file)
            super().close(file)

    def lose(self) -> None:
        """What the system does with the descriptors of a process that has ended."""
        for file in self._opened:
            os.close(file)


def bytes_of(path: Path) -> dict[str, bytes]:
    """Every file of a product, with its bytes."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return {file.name if path.is_dir() else "": file.read_bytes() for file in files}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> FileStore:
    return open_store(mlx(tmp_path_factory.mktemp("source"), weights()))


@pytest.fixture(scope="module")
def whole(source: FileStore, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, bytes]]:
    """What every format is when nothing goes wrong; products that are one file keep their name in no byte."""
    folder = tmp_path_factory.mktemp("whole")
    for kind in KINDS:
        pack(source, folder / kind, kind)
    return {kind: bytes_of(folder / kind) for kind in KINDS}


def counted(source: FileStore, kind: str, folder: Path) -> list[str]:
    """The calls of a pack that goes well."""
    disk = Failing(0, Killed())
    pack(source, folder / "counted", kind, disk=disk)
    shutil.rmtree(folder / "counted") if (folder / "counted").is_dir() else (folder / "counted").unlink()
    return disk.calls


def assert_absent_or_whole(target: Path, expected: dict[str, bytes]) -> None:
    if target.exists():
        assert bytes_of(target) == expected
    assert set(target.parent.iterdir()) <= {target, work_folder(target)}


def finish(source: FileStore, kind: str, target: Path, expected: dict[str, bytes]) -> None:
    """The same call again ends with the bytes of a run that nothing interrupted, and nothing beside them."""
    if target.exists():  # it was named before the end came
        with pytest.raises(CannotWrite, match="exists"):
            pack(source, target, kind, disk=Quick())
    else:
        pack(source, target, kind, disk=Quick())
    assert bytes_of(target) == expected
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize("share", [0, 0.5, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_any_call_the_product_is_absent_or_whole_and_the_same_call_finishes_it(
    kind: str, share: float, source: FileStore, whole: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    calls = counted(source, kind, tmp_path)
    assert len(calls) > 25
    for at in range(1, len(calls) + 1):
        target = tmp_path / str(at) / "out"
        target.parent.mkdir()
        disk = Failing(at, Killed(), share, dead=True)
        with pytest.raises(Killed):
            pack(source, target, kind, disk=disk)
        disk.lose()
        assert_absent_or_whole(target, whole[kind])
        finish(source, kind, target, whole[kind])


@pytest.mark.parametrize(
    "end", [OSError(errno.ENOSPC, "No space left"), OSError(errno.EIO, "I/O error"), KeyboardInterrupt()]
)
@pytest.mark.parametrize("kind", KINDS)
def test_refused_or_interrupted_at_any_call_only_finished_records_are_kept(
    kind: str, end: BaseException, source: FileStore, whole: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    calls = counted(source, kind, tmp_path)
    kept = 0
    for at in range(1, len(calls) + 1):
        target = tmp_path / str(at) / "out"
        target.parent.mkdir()
        with pytest.raises(CannotWrite if isinstance(end, OSError) else type(end)) as refused:
            pack(source, target, kind, disk=Failing(at, end, 0.5))
        assert_absent_or_whole(target, whole[kind])
        left = work_folder(target)
        if left.exists() and calls[at - 1] != "remove":
            kept += 1
            assert (left / "journal").read_bytes().count(b"\n") > 1
            if isinstance(end, OSError):
                assert f"are kept in {left}" in str(refused.value)
        finish(source, kind, target, whole[kind])
    assert kept > 10


@pytest.mark.parametrize("kind", KINDS)
def test_everything_is_on_the_device_before_the_product_has_its_name(
    kind: str, source: FileStore, tmp_path: Path
) -> None:
    calls = counted(source, kind, tmp_path)
    named = calls.index("rename")
    last = max(at for at, call in enumerate(calls) if call in ("write", "resize", "open"))
    files = {"layers": 3, "blocks": 2, "gguf": 1, "safetensors": 1}[kind]
    assert calls[last + 1 : named] == ["sync"] * files + ["sync_folder"]
    assert calls[named:] == ["rename", "sync_folder", "remove"]


class Overtaken(Quick):
    """Between the last look and the rename somebody else takes the name."""

    def rename(self, path: Path, target: Path) -> None:
        target.write_bytes(b"another's")
        super().rename(path, target)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_name_that_is_taken_at_the_last_moment_is_not_replaced(
    kind: str, plain: bool, source: FileStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if plain:
        monkeypatch.setattr("expertcache_reference.stores.disk.rename_exclusively", lambda path, target: False)
    target = tmp_path / "out"
    with pytest.raises(CannotWrite, match="exists"):
        pack(source, target, kind, disk=Overtaken())
    assert target.read_bytes() == b"another's"
    assert work_folder(target).exists()


@pytest.mark.parametrize("system", ["linux", "darwin"])
@pytest.mark.parametrize("number", [0, errno.EEXIST, errno.EINVAL, errno.ENOSYS, errno.ENOENT])
def test_a_rename_that_looks_first_is_the_systems_own(
    system: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    class Libc:
        def renameat2(self, *arguments: Any) -> int:
            assert system == "linux"
            return self.answer(arguments[1], arguments[3], (arguments[0], arguments[2], arguments[4].value))

        def renamex_np(self, *arguments: Any) -> int:
            assert system == "darwin"
            return self.answer(arguments[0], arguments[1], (arguments[2].value,))

        def answer(self, *said: Any) -> int:
            asked.append(said)
            ctypes.set_errno(number)
            return -1 if number else 0

    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(ctypes, "CDLL", lambda name, use_errno: Libc())
    if number in (errno.EEXIST, errno.ENOENT):
        with pytest.raises(FileExistsError if number == errno.EEXIST else FileNotFoundError):
            rename_exclusively(Path("a"), Path("b"))
    else:
        assert rename_exclusively(Path("a"), Path("b")) == (number == 0)
    assert asked == [(b"a", b"b", (-100, -100, 1) if system == "linux" else (4,))]


@pytest.mark.parametrize("kind", KINDS)
def test_records_that_a_power_cut_took_away_are_written_again(
    kind: str, source: FileStore, whole: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    target = tmp_path / "out"
    disk = Failing(20, Killed(), dead=True)
    with pytest.raises(Killed):
        pack(source, target, kind, disk=disk)
    disk.lose()
    for file in (work_folder(target) / "pack").iterdir():
        file.write_bytes(bytes(file.stat().st_size))  # the journal came to the device, the records did not
    done: list[int] = []
    pack(source, target, kind, progress=lambda now, _: done.append(now))
    assert bytes_of(target) == whole[kind]


def test_what_is_done_is_not_done_again(source: FileStore, tmp_path: Path) -> None:
    target = tmp_path / "out"
    first, second = Failing(20, Killed(), dead=True), Failing(0, Killed())
    with pytest.raises(Killed):
        pack(source, target, "layers", disk=first)
    first.lose()
    done = (work_folder(target) / "journal").read_bytes().count(b"\n") - 1
    pack(source, target, "layers", disk=second)
    written = second.calls.count("write") - 1  # the manifest
    assert done > 0
    assert written == (6 - done) * 4  # three parts and a line


def test_another_pack_under_the_same_name_is_refused_until_it_is_given_up(
    source: FileStore, whole: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    target = tmp_path / "out"
    with pytest.raises(CannotWrite, match="records are kept"):
        pack(source, target, "layers", disk=Failing(20, OSError(errno.EIO, "I/O error")))
    before = bytes_of(work_folder(target) / "pack")
    with pytest.raises(CannotWrite, match=r"unfinished pack of another.*--restart"):
        pack(source, target, "layers", alignment=4096)
    with pytest.raises(CannotWrite, match="unfinished pack of another"):
        pack(source, target, "blocks")
    assert bytes_of(work_folder(target) / "pack") == before
    pack(source, target, "blocks", restart=True)
    assert bytes_of(target) == whole["blocks"]
    assert list(tmp_path.iterdir()) == [target]


def test_one_process_packs_a_product_at_a_time(source: FileStore, tmp_path: Path) -> None:
    target, seen = tmp_path / "out", []

    def meanwhile(done: int, total: int) -> None:
        with pytest.raises(CannotWrite, match=r"another process packs to it.*Cure"):
            pack(source, target, "layers")
        seen.append((done, total))

    pack(source, target, "layers", progress=meanwhile)
    assert seen == [(144 * number, 864) for number in range(1, 7)]


def test_what_exists_is_kept(source: FileStore, tmp_path: Path) -> None:
    for name, kind in (("file", "gguf"), ("file", "layers"), ("folder", "layers"), ("link", "blocks")):
        (tmp_path / "file").write_bytes(b"precious")
        (tmp_path / "folder").mkdir(exist_ok=True)
        if not (tmp_path / "link").is_symlink():
            (tmp_path / "link").symlink_to("nothing")
        with pytest.raises(CannotWrite, match=r"exists.*Cure"):
            pack(source, tmp_path / name, kind)
    assert (tmp_path / "file").read_bytes() == b"precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder", "link"]


def test_a_disk_without_room_is_refused_before_anything_is_written(source: FileStore, tmp_path: Path) -> None:
    class Small(Disk):
        def free(self, folder: Path) -> int:
            return 98304

    with pytest.raises(CannotWrite, match=r"needs 96.\d\d KiB, and 96.00 KiB are free.*Cure"):
        pack(source, tmp_path / "out", "layers", disk=Small())
    assert list(tmp_path.iterdir()) == []


def test_what_is_written_already_needs_no_room_again(
    source: FileStore, whole: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    class Full(Quick):
        def free(self, folder: Path) -> int:
            return 98304

    class Room(Failing):
        def free(self, folder: Path) -> int:
            return 1 << 30

    target = tmp_path / "out"
    with pytest.raises(CannotWrite, match="records are kept"):
        pack(source, target, "layers", disk=Room(30, OSError(errno.EIO, "I/O error")))
    written = Work(target, Quick()).written()
    assert 0 < written < 98304
    pack(source, target, "layers", disk=Full())
    assert bytes_of(target) == whole["layers"]


@pytest.mark.parametrize("again", [True, False])
def test_the_lock_of_a_folder_that_another_process_has_just_removed_is_no_lock(
    again: bool, source: FileStore, tmp_path: Path
) -> None:
    """When it is ours it is no longer the file of that name: the other has finished, and a third may have begun."""
    target = tmp_path / "out"
    lock = work_folder(target) / "lock"

    class Late(Quick):
        def lock(self, file: int) -> bool:
            lock.unlink()
            if again:
                lock.write_bytes(b"")
            return super().lock(file)

    with pytest.raises(CannotWrite, match="another process packs to it"):
        pack(source, target, "layers", disk=Late())
    assert not target.exists()


def test_a_folder_that_cannot_be_written_is_refused(source: FileStore, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for target in (tmp_path / "file" / "out", tmp_path / "none" / "out", tmp_path / ("x" * 300)):
        with pytest.raises(CannotWrite, match=r"cannot be written.*Cure"):
            pack(source, target, "layers")
    with pytest.raises(CannotWrite, match="Read-only"):
        pack(source, tmp_path / "out", "gguf", disk=Failing(1, OSError(errno.EROFS, "Read-only file system")))
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_unknown_formats_and_alignments_are_refused(source: FileStore, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="one of layers, blocks, gguf, safetensors"):
        pack(source, tmp_path / "out", "zip")
    with pytest.raises(UnknownName, match="one of 4096, 16384, 65536"):
        pack(source, tmp_path / "out", "layers", alignment=512)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def own(tmp_path: Path) -> FileStore:
    """A source of one's own, to be changed."""
    return open_store(mlx(tmp_path / "own", weights()))


@pytest.mark.rule("XC-LAYOUT-009")
def test_a_source_that_changes_meanwhile_is_refused(own: FileStore, tmp_path: Path) -> None:
    file = own.folder / "model.safetensors"

    def change(done: int, total: int) -> None:
        if done == total:
            os.utime(file, ns=(1, 1))

    with pytest.raises(WrongFile, match=r"changed while it was packed.*--restart"):
        pack(own, tmp_path / "out", "layers", progress=change)
    assert not (tmp_path / "out").exists()
    os.utime(file, ns=(2, 2))
    with pytest.raises(CannotWrite, match="source has changed"):
        pack(own, tmp_path / "out", "layers")
    assert verify(pack(own, tmp_path / "out", "layers", restart=True)) == verify(own)


@pytest.mark.rule("XC-LAYOUT-009")
def test_a_source_with_a_damaged_record_is_not_copied(source: FileStore, tmp_path: Path) -> None:
    first = pack(source, tmp_path / "first", "blocks")
    path = tmp_path / "first" / "experts.bin"
    data = bytearray(path.read_bytes())
    data[first.layout.extents[(0, 1)][1].offset] ^= 255  # type: ignore[index]
    path.write_bytes(data)
    with pytest.raises(WrongFile, match="layer 0, expert 1 has other bytes than were recorded"):
        pack(open_store(tmp_path / "first"), tmp_path / "out", "gguf")
    assert not (tmp_path / "out").exists()


SLOW = """
import sys, time
from expertcache_reference.stores import open_store, pack
def told(done, total):
    print(done, flush=True)
    time.sleep(0.02)
pack(open_store(sys.argv[1]), sys.argv[2], sys.argv[3], progress=told)
"""


@pytest.mark.parametrize(("kind", "after"), [("layers", 1), ("safetensors", 4), ("gguf", 6)])
def test_killed_for_real_the_same_command_finishes_it(
    kind: str, after: int, source: FileStore, whole: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    target = tmp_path / "out"
    command = [sys.executable, "-c", SLOW, str(source.folder), str(target), kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as packing:
        assert packing.stdout is not None
        for _ in range(after):
            assert packing.stdout.readline()
        packing.send_signal(signal.SIGKILL)
    assert packing.returncode == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == [work_folder(target)]
    ran = run("pack", source.folder, target, "--to", kind)
    assert (ran.code, ran.err) == (0, "")
    assert bytes_of(target) == whole[kind]
    assert list(tmp_path.iterdir()) == [target]


INTERRUPTED = """
import os, signal, sys
from expertcache_reference.cli import main
from expertcache_reference.stores.disk import Disk, rename_exclusively
real, calls, name = Disk.write, iter(range(10**9)), sys.argv.pop()
def write(self, *arguments):
    if next(calls) == 10:
        os.kill(os.getpid(), getattr(signal, name))
    return real(self, *arguments)
Disk.write = write
sys.argv[0] = "expertcache"
main()
"""


@pytest.mark.parametrize(("name", "code", "word"), [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "terminated")])
def test_interrupted_it_says_what_is_kept_and_how_to_go_on(
    name: str, code: int, word: str, source: FileStore, whole: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    target = tmp_path / "out"
    command = [sys.executable, "-c", INTERRUPTED, "pack", source.folder, target, "--to", "blocks", name]
    ran = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
    said = f"expertcache: {word}; 2 records are kept in {work_folder(target)}, and the same command continues; "
    assert (ran.returncode, ran.stdout, ran.stderr) == (code, "", said + "remove it to give them up\n")
    finish(source, "blocks", target, whole["blocks"])


def test_what_is_kept_of_a_pack_is_said_where_the_source_is_damaged_too(tmp_path: Path) -> None:
    packed = pack(open_store(mlx(tmp_path / "source", weights())), tmp_path / "packed", "layers")
    at = packed.layout.place(list(packed.layout.extents)[-1])[0]
    data = bytearray((packed.folder / at.file).read_bytes())
    data[at.offset + 3] ^= 1
    (packed.folder / at.file).write_bytes(data)
    with pytest.raises(WrongFile, match=r"other bytes than were recorded.*records are kept in .*, and the same"):
        pack(open_store(packed.folder), tmp_path / "again", "blocks")
    data[at.offset + 3] ^= 1
    (packed.folder / at.file).write_bytes(data)
    assert pack(open_store(packed.folder), tmp_path / "again", "blocks").fingerprint == packed.fingerprint
