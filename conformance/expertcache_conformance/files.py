"""The files of a run: replay files and lists of expected failures in, replay files and the report out.

What cannot be written is found before anything runs, and nothing but a regular file is ever replaced.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
import tomllib
import uuid
from pathlib import Path
from typing import Any

from expertcache_conformance.decoding import InvalidReplay, decode_program
from expertcache_conformance.program import FORMAT, VERSION, Program
from expertcache_conformance.questions import Question, decode_question
from expertcache_spec.rules import RULES


class CannotRead(ValueError):
    """A file given to an option that does not hold what the option needs."""


class CannotWrite(ValueError):
    """A place given to an option where nothing can be written; nothing was changed."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"{path}: {what}. Cure: name a place that can be written")


def check_file(path: Path) -> None:
    """Raise `CannotWrite` unless `write` could write the file now."""
    target = _target(path)
    if not target.parent.is_dir():
        raise CannotWrite(path, f"no folder {target.parent}")
    _probe(path, target.parent)


def check_folder(path: Path) -> None:
    """Raise `CannotWrite` unless the folder is there or can be made, and can be written."""
    nearest = next(place for place in (path.absolute(), *path.absolute().parents) if os.path.lexists(place))
    if not nearest.is_dir():
        raise CannotWrite(path, f"is no folder ({nearest} is in the way)" if nearest != path else "is no folder")
    _probe(path, nearest)


def _probe(path: Path, folder: Path) -> None:
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise CannotWrite(path, f"cannot write into {folder}: {error.strerror}") from error


def write(path: Path, record: dict[str, Any]) -> None:
    """Write the record as JSON, whole or not at all; raises `CannotWrite`. A symbolic link to a file stays one."""
    target = _target(path)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex[:12]}.partial")
    try:
        try:
            with temporary.open("x", encoding="utf-8") as file:  # its permissions are those that the user asked for
                json.dump(record, file, indent=1)
                file.write("\n")
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise CannotWrite(path, str(error.strerror)) from error


def _target(path: Path) -> Path:
    """Where to write: the path, or where it leads as a symbolic link."""
    target = Path(os.path.realpath(path))
    try:
        kind = stat.S_IFMT(target.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return target
    except OSError as error:
        raise CannotWrite(path, str(error.strerror)) from error
    if kind != stat.S_IFREG:  # a rename would put a file in the place of the device itself
        raise CannotWrite(path, "is a directory" if kind == stat.S_IFDIR else "is no regular file")
    return target


_WITNESS = ("operations", "config", "question")


def write_replay(folder: Path, test: str, record: dict[str, Any]) -> Path:
    """Write one replay file under a name made of the rule and the witness; returns where. Raises `CannotWrite`."""
    witness = [test, *(record[name] for name in _WITNESS if name in record)]
    digest = hashlib.sha256(json.dumps(witness).encode()).hexdigest()[:8]
    path = folder / f"{record['rule']}-{digest}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotWrite(folder, str(error.strerror)) from error
    write(path, record)
    return path


def read_replay(name: str | None) -> Program | Question | None:
    """The program or question of a replay file; raises `CannotRead`."""
    if name is None:
        return None
    try:
        record = json.loads(Path(name).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CannotRead(f"{name} is no readable replay file: {error}") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT or record.get("version") != VERSION:
        raise CannotRead(f"{name} is no replay file of format {FORMAT} version {VERSION}")
    try:
        return decode_question(record["question"], name) if "question" in record else decode_program(record, name)
    except InvalidReplay as error:
        raise CannotRead(str(error)) from error


def read_expected(name: str | None) -> dict[str, str]:
    """Rule id to reason, from a TOML file of `[[expected]]` tables with `rule` and `reason`; raises `CannotRead`."""
    if name is None:
        return {}
    try:
        tables = tomllib.loads(Path(name).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CannotRead(f"{name} is no readable TOML file: {error}") from error
    listed = tables.get("expected")
    if set(tables) != {"expected"} or not isinstance(listed, list) or not listed:
        raise CannotRead(f"{name} must hold [[expected]] tables and nothing else")
    expected: dict[str, str] = {}
    for entry in listed:
        if not _is_entry(entry) or entry["rule"] not in RULES or entry["rule"] in expected:
            raise CannotRead(f"{name}: {entry} needs a known rule, listed once, and a reason, both as text")
        expected[entry["rule"]] = entry["reason"]
    return expected


def _is_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and set(entry) == {"rule", "reason"}
        and all(isinstance(text, str) and text.strip() for text in entry.values())
    )
