"""Stores whose files are damaged, stale, exchanged or hostile: refused by a typed error, before a record is read."""

from __future__ import annotations

import json
import os
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from expertcache_reference.stores import KINDS, FileStore, open_store, verify
from expertcache_reference.stores.reading import MAX_HEADER
from expertcache_spec.errors import ExpertCacheError
from expertcache_spec.layout import broken_laws
from expertcache_spec.layout.files import WrongFile

from .models import gguf, mlx, olmoe, pack, stored, weights

FORMATS = (*KINDS, "plain-gguf", "plain-safetensors", "plain-olmoe")
DATA = {"layers": "layer_02.bin", "blocks": "experts.bin"}
"""What is damaged of the folders; of the others it is their one file."""


def written(form: str, folder: Path, seed: int = 1) -> Path:
    """A store of the form; what `open_store` is given."""
    model = weights(seed=seed)
    if form == "plain-gguf":
        return gguf(folder / "plain.gguf", model)
    if form.startswith("plain"):
        return (mlx if form == "plain-safetensors" else olmoe)(folder / "plain", model)
    return (
        folder
        / pack(open_store(mlx(folder / f"source{seed}", model)), folder / form, form).folder
        / ("" if form in DATA else form)
    )


def data_of(path: Path) -> Path:
    """The file with the last records."""
    return path / DATA[path.name] if path.is_dir() else path


def end_of_records(store: FileStore) -> int:
    """Where in that file the last record ends."""
    name = DATA.get(store.kind, next(iter(store.layout.files)))
    return max(extent.end for found in store.layout.extents.values() for extent in found if extent.file == name)


CUTS: dict[str, Callable[[bytes], bytes]] = {
    "one byte short": lambda data: data[:-1],
    "half": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "four bytes": lambda data: data[:4],
    "one byte more": lambda data: data + b"\0",
    "a tail": lambda data: data + bytes(100_000),
}


@pytest.mark.rule("XC-LAYOUT-009")
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("form", FORMATS)
def test_a_file_that_is_cut_off_or_has_a_tail_is_refused(form: str, cut: str, tmp_path: Path) -> None:
    path = written(form, tmp_path)
    data = data_of(path)
    data.write_bytes(CUTS[cut](data.read_bytes()))
    with pytest.raises(WrongFile, match=r".*: .+\. Cure: .+") as refused:
        open_store(path)
    assert data.name in str(refused.value)


@pytest.mark.rule("XC-LAYOUT-001", "XC-LAYOUT-009")
@pytest.mark.parametrize("form", FORMATS)
def test_the_first_record_that_a_short_file_lacks_is_named(form: str, tmp_path: Path) -> None:
    path = written(form, tmp_path)
    data, end = data_of(path), end_of_records(open_store(path))
    data.write_bytes(data.read_bytes()[: end - 1])
    lacking = r"Key\(layer=2, expert=2\)" if form != "plain-safetensors" else r"first incomplete record Key"
    with pytest.raises(WrongFile, match=f"{end - 1} bytes, expected .*{lacking}"):
        open_store(path)


@pytest.mark.rule("XC-LAYOUT-009")
@pytest.mark.parametrize("form", KINDS)
def test_a_file_of_the_same_size_with_other_records_is_refused(form: str, tmp_path: Path) -> None:
    path, other = written(form, tmp_path), written(form, tmp_path / "other", seed=2)
    mine, theirs = data_of(path), data_of(other)
    end = end_of_records(open_store(path))
    whole, stale = mine.read_bytes(), theirs.read_bytes()
    assert len(whole) == len(stale)
    mine.write_bytes(whole[: end - 10] + stale[end - 10 : end] + whole[end:])
    with pytest.raises(WrongFile, match=r"other (layout|bytes)|another model"):
        open_store(path)


@pytest.mark.rule("XC-LAYOUT-009")
def test_layers_that_are_exchanged_or_missing_are_refused(tmp_path: Path) -> None:
    path = written("layers", tmp_path)
    first, second = path / "layer_00.bin", path / "layer_02.bin"
    first.rename(path / "aside")
    with pytest.raises(WrongFile, match=r"layer_00.bin: the file is missing"):
        open_store(path)
    second.rename(first)
    (path / "aside").rename(second)
    with pytest.raises(WrongFile, match="damaged, or made for another model or layout: damaged, not "):
        open_store(path)


@pytest.mark.parametrize("form", KINDS)
def test_a_damaged_middle_is_found_by_reading_all_and_named(form: str, tmp_path: Path) -> None:
    path = written(form, tmp_path)
    store = open_store(path)
    at = store.layout.place(next(key for key in store.layout.extents if key == (2, 1)))[1]
    file = store.folder / at.file
    data = bytearray(file.read_bytes())
    data[at.offset + 3] ^= 1
    file.write_bytes(data)
    with pytest.raises(WrongFile, match=r"byte \d+: layer 2, expert 1 has other bytes than were recorded.*Cure"):
        verify(open_store(path))


@pytest.mark.rule("XC-LAYOUT-009")
def test_the_format_is_what_the_file_says_not_its_name(tmp_path: Path) -> None:
    path = written("plain-gguf", tmp_path)
    renamed = path.rename(tmp_path / "model.safetensors")
    assert open_store(renamed).kind == "gguf"
    layers, file = written("layers", tmp_path), tmp_path / "layers" / "layer_00.bin"
    file.write_bytes(renamed.read_bytes().ljust(file.stat().st_size, b"\0")[: file.stat().st_size])
    with pytest.raises(WrongFile, match="another model or layout"):
        open_store(layers)


@pytest.mark.parametrize("name", ["nothing", "text", "folder", "trace", "pipe"])
def test_what_is_no_model_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("These are not the weights.")
    (tmp_path / "trace").write_text('{"format": "expertcache-trace", "version": 1}\n' * 100)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")  # nobody waits for it
    with pytest.raises(WrongFile, match=r"Cure"):
        open_store(tmp_path / name)


def test_a_model_without_routed_experts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongFile, match="no tensors of routed experts"):
        open_store(safetensors(tmp_path, {"model.layers.0.mlp.gate_proj.weight": entry("U8", [4], 0, 4)}, 4))


# ------------------------------------------------------------------------------------------------- manifests


def put(manifest: dict[str, Any], path: str, value: object) -> None:
    """Set the field at a path of names."""
    *way, last = path.split("/")
    inner: Any = manifest
    for name in way:
        inner = inner[int(name) if isinstance(inner, list) else name]
    if value is None:
        del inner[int(last) if isinstance(inner, list) else last]
    else:
        inner[int(last) if isinstance(inner, list) else last] = value


LIES: list[tuple[str, object]] = [
    *((name, None) for name in ("format", "version", "kind", "alignment", "model", "parts", "records", "content")),
    *((name, None) for name in ("probes", "about", "offsets", "sizes", "fingerprint", "model/top_k", "parts/2")),
    *((name, 7) for name in ("format", "kind", "model", "parts", "records", "content", "offsets", "sizes", "about")),
    ("version", 2), ("version", True), ("kind", "gguf"), ("kind", "zip"), ("alignment", 0), ("alignment", 1.5),
    ("alignment", -4096), ("model/layers", 2), ("model/layers", 10**12), ("model/experts", 4),
    ("model/experts", 10**12), ("model/top_k", 4), ("model/top_k", 0), ("model/top_k", 1.0), ("parts/x", []),
    ("parts/2", []), ("parts/2/0", ["gate", "F16", [4, 6]]), ("parts/2/0", ["gate", "F16", [4, 6], 49]),
    ("parts/2/0/3", 0), ("parts/2/0/3", 2**62), ("parts/2/0/0", "up"), ("parts/2/0/1", "F32"),
    ("parts/2/0/2", [6, 4]), ("parts/2/0/2", [4, -6]), ("parts/2/0/2", "46"), ("parts/02", [["a", "b", [1], 1]]),
    ("records/2/1", "0" * 64), ("records/2/1", "x" * 64), ("records/2/1", 3), ("records/2", []), ("records/7", []),
    ("content", "0" * 64), ("fingerprint", "0" * 64), ("offsets/2", []), ("offsets/2", ["layer_02.bin", [0, 1]]),
    ("offsets/2/0", "../layer_02.bin"), ("offsets/2/0", "layer_00.bin"), ("offsets/2/1/1", 4096),
    ("offsets/2/1/1", 0), ("offsets/2/1/1", 8), ("offsets/2/1/1", -16384), ("offsets/2/1/1", 2**62),
    ("offsets/2/1/1", "16384"), ("offsets/7", ["layer_02.bin", [0, 0, 0]]), ("sizes/layer_02.bin", 1),
    ("sizes/layer_02.bin", 2**62), ("sizes/layer_02.bin", 4.5), ("sizes/..", 4), ("sizes/a", 4),
    ("probes/layer_02.bin", "0" * 64), ("probes/layer_02.bin", 3),
]  # fmt: skip


@pytest.mark.rule("XC-LAYOUT-001", "XC-LAYOUT-002", "XC-LAYOUT-003")
@pytest.mark.parametrize(("path", "value"), LIES)
def test_a_manifest_that_lies_is_refused(path: str, value: object, tmp_path: Path) -> None:
    file = written("layers", tmp_path) / "manifest.json"
    manifest = json.loads(file.read_text())
    put(manifest, path, value)
    file.write_text(json.dumps(manifest))
    with pytest.raises(WrongFile, match=r"Cure: .+"):
        open_store(tmp_path / "layers")


@pytest.mark.parametrize("text", ["", "{", "[]", "nul", '{"a": NaN}', '{"a": 1, "a": 1}', "[" * 100_000, "\xff"])
def test_a_manifest_that_is_no_strict_json_is_refused(text: str, tmp_path: Path) -> None:
    (written("layers", tmp_path) / "manifest.json").write_text(text, encoding="latin-1")
    with pytest.raises(WrongFile, match=r"manifest.json: its header is.*Cure"):
        open_store(tmp_path / "layers")


# ------------------------------------------------------------------------------------------------- safetensors


def entry(dtype: object, shape: object, begin: object, end: object) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def safetensors(folder: Path, header: object, data: int) -> Path:
    """A file with this header, in JSON, and so many bytes of data."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path = folder / "model.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(data))
    (folder / "config.json").write_text('{"top_k": 1}')
    return path


GATE = "model.layers.0.mlp.switch_mlp.gate_proj.weight"
UP = "model.layers.0.mlp.switch_mlp.up_proj.weight"
ONE = "model.layers.0.mlp.experts.{}.gate_proj.weight"
BAD_HEADERS: dict[str, Any] = {
    "text": b"{not json}",
    "list": [],
    "deep": b'{"a":' + b"[" * 100_000,
    "twice": b'{"a": {"dtype":"U8","shape":[1],"data_offsets":[0,1]}, "a": {"dtype":"U8","shape":[1]}}',
    "no entry": {GATE: 3},
    "no offsets": {GATE: {"dtype": "U8", "shape": [2, 2]}},
    "dtype": {GATE: entry("Q9", [2, 2], 0, 4)},
    "dtype no text": {GATE: entry(3, [2, 2], 0, 4)},
    "shape": {GATE: entry("U8", [2, 3], 0, 4)},
    "shape of floats": {GATE: entry("U8", [2.0, 2], 0, 4)},
    "shape of booleans": {GATE: entry("U8", [True, 4], 0, 4)},
    "negative shape": {GATE: entry("U8", [-2, -2], 0, 4)},
    "many axes": {GATE: entry("U8", [1] * 100, 0, 1)},
    "huge axes": {GATE: entry("U8", [2**62] * 16, 0, 4)},
    "offsets backwards": {GATE: entry("U8", [2, 2], 4, 0)},
    "negative offset": {GATE: entry("U8", [2, 2], -4, 0)},
    "hole": {GATE: entry("U8", [2, 2], 4, 8)},
    "overlap": {GATE: entry("U8", [2, 2], 0, 4), UP: entry("U8", [2, 2], 2, 6), "x": entry("U8", [2], 6, 8)},
    "beyond": {GATE: entry("U8", [2, 2**40], 0, 2**41)},
    "metadata": {"__metadata__": {"a": 1}, GATE: entry("U8", [2, 2], 0, 4)},
    "manifest no json": {"__metadata__": {"expertcache": "x"}, GATE: entry("U8", [2, 2], 0, 4)},
    "manifest of nothing": {"__metadata__": {"expertcache": "{}"}, GATE: entry("U8", [2, 2], 0, 4)},
    "no experts": {GATE: entry("U8", [0, 2], 0, 0)},
    "no axis": {GATE: entry("U8", [], 0, 1)},
    "different experts": {GATE: entry("U8", [2, 2], 0, 4), UP: entry("U8", [4, 1], 4, 8)},
    "an expert lacks": {ONE.format(0): entry("U8", [2], 0, 2), ONE.format(2): entry("U8", [2], 2, 4)},
    "experts differ": {ONE.format(0): entry("U8", [2], 0, 2), ONE.format(1): entry("I8", [2], 2, 4)},
    "stacked and apart": {GATE: entry("U8", [2, 2], 0, 4), ONE.format(0): entry("U8", [4], 4, 8)},
    "many experts": {GATE: entry("F4", [2**22, 2], 0, 2**22)},
}


@pytest.mark.rule("XC-LAYOUT-001", "XC-LAYOUT-002", "XC-LAYOUT-009")
@pytest.mark.parametrize("name", BAD_HEADERS)
def test_a_safetensors_header_that_cannot_be_is_refused(name: str, tmp_path: Path) -> None:
    path = safetensors(tmp_path, BAD_HEADERS[name], 2**22 if name == "many experts" else 4)
    with pytest.raises(WrongFile, match=r"Cure: .+"):
        open_store(path)


@pytest.mark.parametrize("length", [0, 1, 5, MAX_HEADER + 1, 2**40, 2**63, 2**64 - 1])
def test_a_header_longer_than_the_file_or_all_reason_is_not_read(length: int, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(length.to_bytes(8, "little") + b'{"a": 1}' * 100)
    with path.open("r+b") as file:
        file.truncate(2**41)  # a hole, which takes no room: the length alone must be refused
    assert_refused_in_little_memory(path, 2**20)


def assert_refused_in_little_memory(path: Path, most: int) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(WrongFile, match=r"Cure: .+"):
            open_store(path)
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("filling", [b"[],", b'"a":{},', b"{", b"1,"])
def test_a_header_of_endless_values_is_refused_in_bounded_memory(filling: bytes, tmp_path: Path) -> None:
    text = b'{"a":[' + filling * ((MAX_HEADER - 100) // len(filling)) + b"1]}"
    assert_refused_in_little_memory(safetensors(tmp_path, text, 0), 3 * MAX_HEADER)


# ------------------------------------------------------------------------------------------------- GGUF


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def key(name: bytes, kind: int, value: bytes) -> bytes:
    return text(name) + struct.pack("<I", kind) + value


def tensor(name: bytes, shape: list[int], kind: int, offset: int, axes: int | None = None) -> bytes:
    dims = struct.pack(f"<{len(shape)}Q", *shape)
    return (
        text(name) + struct.pack("<I", len(shape) if axes is None else axes) + dims + struct.pack("<IQ", kind, offset)
    )


def made(keys: list[bytes], tensors: list[bytes], data: int = 0, counts: tuple[int, int] | None = None,
         version: bytes = b"\3\0\0\0", magic: bytes = b"GGUF") -> bytes:  # fmt: skip
    head = magic + version + struct.pack("<QQ", *(counts or (len(tensors), len(keys)))) + b"".join(keys + tensors)
    return head.ljust(-(-len(head) // 32) * 32, b"\0") + bytes(data)


GG, GU = b"blk.0.ffn_gate_exps.weight", b"blk.0.ffn_up_exps.weight"
USED = key(b"a.expert_used_count", 4, struct.pack("<I", 1))
I8 = 24
GOOD = tensor(GG, [4, 2, 2], I8, 0)
BAD_GGUF: dict[str, bytes] = {
    "version 1": made([USED], [GOOD], 32, version=b"\1\0\0\0"),
    "version 99": made([USED], [GOOD], 32, version=b"\x63\0\0\0"),
    "big-endian": made([USED], [GOOD], 32, version=b"\0\0\0\3"),
    "tensor count": made([USED], [GOOD], 32, counts=(2**63, 1)),
    "one tensor more": made([USED], [GOOD], 32, counts=(2, 1)),
    "key count": made([USED], [GOOD], 32, counts=(1, 2**64 - 1)),
    "long key": made([struct.pack("<Q", 2**62) + b"abc"], [GOOD], 32),
    "key no text": made([key(b"\xff\xfe", 4, b"1234")], [GOOD], 32),
    "unknown value": made([key(b"a", 99, b"1234")], [GOOD], 32),
    "long string": made([key(b"a", 8, struct.pack("<Q", 2**62))], [GOOD], 32),
    "long kept string": made([key(b"general.name", 8, struct.pack("<Q", 2**62))], [GOOD], 32),
    "many bytes": made([key(b"a", 9, struct.pack("<IQ", 0, 2**60))], [GOOD], 32),
    "many strings": made([key(b"a", 9, struct.pack("<IQ", 8, 2**60))], [GOOD], 32),
    "more strings than there are": made([key(b"a", 9, struct.pack("<IQ", 8, 2**20))], [GOOD], 32),
    "nested lists": made([key(b"a", 9, struct.pack("<IQ", 9, 1) * 100)], [GOOD], 32),
    "many lists": made([key(b"a", 9, struct.pack("<IQ", 9, 2**50))], [GOOD], 32),
    "alignment 0": made([USED, key(b"general.alignment", 4, struct.pack("<I", 0))], [GOOD], 32),
    "alignment 48": made([USED, key(b"general.alignment", 4, struct.pack("<I", 48))], [GOOD], 32),
    "alignment text": made([USED, key(b"general.alignment", 8, text(b"32"))], [GOOD], 32),
    "alignment huge": made([USED, key(b"general.alignment", 4, struct.pack("<I", 2**31))], [GOOD], 32),
    "no axes": made([USED], [tensor(GG, [], I8, 0)], 32),
    "many axes": made([USED], [tensor(GG, [4, 2], I8, 0, axes=2**31)], 32),
    "unknown type": made([USED], [tensor(GG, [4, 2, 2], 4000, 0)], 32),
    "broken block": made([USED], [tensor(GG, [31, 2, 2], 8, 0)], 320),
    "offset beyond": made([USED], [tensor(GG, [4, 2, 2], I8, 2**60)], 32),
    "offset not aligned": made([USED], [tensor(GG, [4, 2, 2], I8, 8)], 32),
    "huge shape": made([USED], [tensor(GG, [2**62, 2**62, 2], I8, 0)], 32),
    "overlap": made([USED], [tensor(GG, [32, 2, 2], I8, 0), tensor(GU, [32, 2, 2], I8, 64)], 192),
    "twice": made([USED], [GOOD, tensor(GG, [4, 2, 2], I8, 32)], 64),
    "no experts": made([USED], [tensor(GG, [4, 2, 0], I8, 0)], 32),
    "experts differ": made([USED], [GOOD, tensor(GU, [4, 2, 3], I8, 32)], 64),
    "says other experts": made([USED, key(b"a.expert_count", 4, struct.pack("<I", 3))], [GOOD], 32),
    "says many layers": made([USED, key(b"a.block_count", 4, struct.pack("<I", 2**31))], [GOOD], 32),
    "no top-k": made([], [GOOD], 32),
    "manifest of nothing": made([USED, key(b"expertcache.manifest", 8, text(b"{}"))], [GOOD], 32),
}


@pytest.mark.rule("XC-LAYOUT-001", "XC-LAYOUT-002", "XC-LAYOUT-009")
@pytest.mark.parametrize("name", BAD_GGUF)
def test_a_gguf_header_that_cannot_be_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "good.gguf").write_bytes(made([USED], [GOOD], 32))
    assert len(stored(open_store(tmp_path / "good.gguf"))) == 2  # the tables' own: all else is what is wrong
    (tmp_path / "bad.gguf").write_bytes(BAD_GGUF[name])
    assert_refused_in_little_memory(tmp_path / "bad.gguf", 8 * 2**20)


# ------------------------------------------------------------------------------------------------- chance


def mutated(data: bytes, chance: Random, header: int) -> bytes:
    """The data with a few bytes of its header changed, a run removed or doubled."""
    found = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(min(header, len(found)))
        match chance.randrange(4):
            case 0:
                found[at] = chance.randrange(256)
            case 1:
                found[at] ^= 1 << chance.randrange(8)
            case 2:
                del found[at : at + chance.randint(1, 9)]
            case _:
                found[at:at] = found[at : at + chance.randint(1, 9)]
    return bytes(found)


def opened(path: Path) -> FileStore | ExpertCacheError:
    """The store, or its refusal; every other error is raised."""
    try:
        return open_store(path)
    except ExpertCacheError as error:
        return error


def assert_refused_or_lawful(form: str, count: int, folder: Path) -> None:
    path = written(form, folder)
    file = path / "manifest.json" if path.is_dir() else path
    data, before = file.read_bytes(), stored(open_store(path))
    header = len(data) if path.is_dir() else min(e.offset for x in open_store(path).layout.extents.values() for e in x)
    refused = 0
    for seed in range(count):
        file.write_bytes(mutated(data, Random(seed), header))
        store = opened(path)
        if isinstance(store, ExpertCacheError):
            assert all((store.what, store.where, store.cure)), seed
            refused += 1
            continue
        assert broken_laws(store.layout) == [], seed
        if not form.startswith("plain"):
            assert stored(store) == before, seed
    assert refused > count // 4  # of a padded head, much is spaces


@pytest.mark.parametrize("form", FORMATS)
def test_a_store_with_a_mutated_header_is_refused_or_lawful(form: str, tmp_path: Path) -> None:
    assert_refused_or_lawful(form, 60, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("form", FORMATS)
def test_a_store_with_a_mutated_header_is_refused_or_lawful_many_times(form: str, tmp_path: Path) -> None:
    assert_refused_or_lawful(form, 5000, tmp_path)


@pytest.mark.parametrize("inside", [(), ("model.gguf",), ("one.gguf", "two.gguf")])
def test_a_folder_without_a_manifest_says_what_was_looked_for(tmp_path: Path, inside: tuple[str, ...]) -> None:
    for name in inside:
        (tmp_path / name).write_bytes(b"GGUF")
    with pytest.raises(WrongFile, match=r"a folder without manifest.json or .*Cure: name the model's file in it"):
        open_store(tmp_path)
