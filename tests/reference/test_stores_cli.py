"""`expertcache pack` and `expertcache store info`."""

from __future__ import annotations

from pathlib import Path

import pytest

from expertcache_reference.stores import KINDS, open_store, verify

from .models import gguf, mlx, stored, weights
from .running import process, run, run_json

SHAPES = {"gate": (128, 64), "up": (128, 64), "down": (64, 128)}
"""Projections of one page of 16 KiB each."""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return mlx(tmp_path / "model", weights((0, 1, 3), 4, SHAPES)).parent


def test_pack_and_info_go_round_all_formats(model: Path, tmp_path: Path) -> None:
    here, content = model, verify(open_store(model))
    for kind in (*KINDS, "layers"):
        target = tmp_path / f"{here.name}-{kind}"
        ran = run("pack", here, target, "--to", kind, "--verify")
        assert (ran.code, ran.out, ran.err) == (0, f"{target}: 12 records, {content}, verified\n", "")
        info = run_json("store", "info", target)
        assert (info["kind"], info["fingerprint"], info["content"], info["verified"]) == (kind, content, content, False)
        here = target
    assert stored(open_store(here)) == stored(open_store(model))


def test_info_says_how_a_record_lies(model: Path, tmp_path: Path) -> None:
    assert run("pack", model, tmp_path / "blocks", "--to", "blocks", "--align", "64KiB").code == 0
    info = run_json("store", "info", tmp_path / "blocks", "--verify")
    assert info["verified"] is True
    assert (info["layers"], info["routed"], info["experts"], info["top_k"]) == (4, [0, 1, 3], 4, 2)
    assert (info["records"], info["bytes"], info["alignment"]) == (12, 12 * 49152, 65536)
    assert info["files"] == {"experts.bin": 11 * 65536 + 49152}
    assert info["reads_per_record"] == {"0": 1, "1": 1, "3": 1}
    assert info["parts"]["3"][2] == {"name": "down", "dtype": "F16", "shape": [64, 128], "bytes": 16384}
    assert run_json("store", "info", model)["reads_per_record"] == {"0": 3, "1": 3, "3": 3}


def test_info_without_json_is_readable(model: Path, tmp_path: Path) -> None:
    ran = run("store", "info", model)
    assert ran.code == 0
    for words in (
        "format       safetensors", "content      unknown without --verify", "4 layers (3 routed), 4 experts, top-2",
        "records      12, 589824 bytes (576.00 KiB)", "no digests are recorded", "64 x 128",
    ):  # fmt: skip
        assert words in ran.out
    path = gguf(tmp_path / "m.gguf", weights((0, 1, 3), 4, SHAPES))
    content = verify(open_store(model))
    assert f"content      {content}" in run("store", "info", path, "--verify").out
    assert run("pack", path, tmp_path / "out", "--to", "layers").code == 0
    assert "every record is as recorded" in run("store", "info", tmp_path / "out", "--verify").out


def test_a_damaged_store_is_an_exit_with_1_and_one_line(model: Path, tmp_path: Path) -> None:
    assert run("pack", model, tmp_path / "out", "--to", "layers").code == 0
    file = tmp_path / "out" / "layer_01.bin"
    data = bytearray(file.read_bytes())
    data[49152 + 20000] ^= 1
    file.write_bytes(data)
    assert run("store", "info", tmp_path / "out").code == 0
    ran = run("store", "info", tmp_path / "out", "--verify")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"expertcache: {file}: byte 49152: layer 1, expert 1 has other bytes than were recorded.")
    file.write_bytes(data[:-1])
    ran = run("pack", tmp_path / "out", tmp_path / "again", "--to", "gguf")
    assert (ran.code, ran.out) == (1, "")
    assert "layer_01.bin: 196607 bytes, expected 196608; first incomplete record Key(layer=1, expert=3)" in ran.err
    assert not (tmp_path / "again").exists()


def test_what_another_command_line_would_cure_is_an_exit_with_2(model: Path, tmp_path: Path) -> None:
    for words in (("--to", "zip"), ("--to", "gguf", "--align", "5KiB"), ("--to", "gguf", "--align", "16384"), ()):
        ran = run("pack", model, tmp_path / "out", *words)
        assert ran.code == 2
        assert ran.out == ""
    assert run("pack", model, model, "--to", "layers").code == 2
    for nameless in ("", ".", "/"):
        ran = run("pack", model, nameless, "--to", "layers")
        assert (ran.code, "name the file or the folder to make" in ran.err) == (2, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


def test_top_k_may_be_stated_where_files_do_not(model: Path, tmp_path: Path) -> None:
    (model / "config.json").unlink()
    ran = run("pack", model, tmp_path / "out", "--to", "layers")
    assert ran.code == 1
    assert "--top-k" in ran.err
    assert run("pack", model, tmp_path / "out", "--to", "layers", "--top-k", 3).code == 0
    assert run_json("store", "info", tmp_path / "out")["top_k"] == 3


def test_other_commands_do_not_wait_for_the_import_of_gguf() -> None:
    program = "import expertcache_reference.cli.commands, sys; print('gguf' in sys.modules)"
    assert process("-c", program).out == "False\n"
