"""Stores: the same records out of every format, and the formats are those that others read and write."""

from __future__ import annotations

import errno
import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import save_file

from expertcache_reference.stores import KINDS, FileStore, open_store, verify
from expertcache_reference.stores.names import role
from expertcache_reference.stores.plans import ALIGNMENTS, plan
from expertcache_reference.system.simulated import Faults, Replay, SimulatedMachine, Simulation
from expertcache_reference.system.simulated import run as simulate
from expertcache_spec.layout import broken_laws, packed_layers, record_blocks, stacked_tensors
from expertcache_spec.layout.files import WrongFile
from expertcache_spec.model import Geometry, Key

from .models import EXPERTS, LAYERS, SHAPES, TOP_K, gguf, mlx, olmoe, pack, records, stored, weights

WRITERS = {"mlx": mlx, "olmoe": olmoe, "gguf": gguf}
QUANTIZED = {"gate": (4, 6), "gate.scales": (4, 2), "gate.biases": (4, 2), "down": (6, 4), "down.scales": (6, 1)}


def check(store: FileStore, expected: dict[Key, bytes]) -> None:
    """The store is lawful and gives these records."""
    assert broken_laws(store.layout) == []
    assert stored(store) == expected
    for name, size in store.layout.files.items():
        assert (store.folder / name).stat().st_size == size


@pytest.mark.rule("XC-LAYOUT-005")
@pytest.mark.parametrize("origin", WRITERS)
def test_every_pair_of_formats_gives_the_same_bytes_and_one_fingerprint(origin: str, tmp_path: Path) -> None:
    model = weights()
    source = open_store(WRITERS[origin](tmp_path / "source", model))
    check(source, records(model))
    assert source.geometry == Geometry(3, EXPERTS, TOP_K, (144, 0, 144), LAYERS)
    assert list(source.layout.shape.parts[0].items()) == [("gate", 48), ("up", 48), ("down", 48)]
    names = {verify(source)}
    for one, two in product(KINDS, KINDS):
        first = tmp_path / one
        if not first.exists():
            pack(source, first, one)
        second = pack(open_store(first), tmp_path / f"{one}-{two}", two, alignment=4096)
        check(second, records(model))
        names |= {second.fingerprint, verify(second), open_store(first).fingerprint}
        assert second.model == open_store(first).model
        assert second.metadata["parts"] == source.metadata["parts"]
    assert len(names) == 1


def test_the_fingerprint_is_of_every_byte_and_of_how_they_are_cut(tmp_path: Path) -> None:
    model, changed = weights(), weights()
    changed[2]["down"] = changed[2]["down"].copy()
    changed[2]["down"].view(np.uint8)[-1, -1, -1] ^= 1
    cut = {layer: {**parts, "gate": parts["gate"].reshape(EXPERTS, 6, 4)} for layer, parts in model.items()}
    names = [
        pack(open_store(mlx(tmp_path / str(number), each)), tmp_path / f"{number}.packed", "layers").fingerprint
        for number, each in enumerate((model, changed, cut, weights()))
    ]
    assert len(set(names)) == 3
    assert names[0] == names[3]


@pytest.mark.rule("XC-LAYOUT-003")
@pytest.mark.parametrize("alignment", ALIGNMENTS)
@pytest.mark.parametrize("width", [6, 4096, 8192, 32768 + 8192])
def test_records_begin_on_the_page_and_lie_where_the_specification_puts_them(
    alignment: int, width: int, tmp_path: Path
) -> None:
    shapes = {"gate": (2, width), "up": (2, width), "down": (2 * width, 1)}
    model = weights((0,), 2, shapes, np.uint8)
    source = open_store(mlx(tmp_path / "source", model))
    shape = source.layout.shape
    for kind in KINDS:
        store = pack(source, tmp_path / kind, kind, alignment=alignment)
        check(store, records(model))
        if kind in ("layers", "blocks"):
            assert all(store.layout.place(key)[0].offset % alignment == 0 for key in shape.keys())  # noqa: SIM118
    if shape.record_bytes(0) % alignment == 0:
        assert open_store(tmp_path / "layers").layout.extents == packed_layers(shape).extents
    assert open_store(tmp_path / "blocks").layout.extents == record_blocks(shape, alignment).extents
    there = open_store(tmp_path / "gguf").layout
    header = min(extent.offset for found in there.extents.values() for extent in found)
    assert header % alignment == 0
    assert there.extents == stacked_tensors(shape, alignment, "gguf", header).extents


def test_other_libraries_read_what_is_written(tmp_path: Path) -> None:
    model = weights()
    source = open_store(olmoe(tmp_path / "source", model))
    pack(source, tmp_path / "a.safetensors", "safetensors")
    pack(source, tmp_path / "a.gguf", "gguf")
    with safe_open(tmp_path / "a.safetensors", "numpy") as file:
        for layer, parts in model.items():
            for part, stacked in parts.items():
                found = file.get_tensor(f"model.layers.{layer}.mlp.switch_mlp.{part}_proj.weight")
                assert found.dtype == np.float16
                assert found.tobytes() == stacked.tobytes()
                assert found.shape == stacked.shape
    reader = GGUFReader(tmp_path / "a.gguf")
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    assert reader.alignment == 16384
    assert len(tensors) == 6
    for layer, parts in model.items():
        for part, stacked in parts.items():
            tensor = tensors[f"blk.{layer}.ffn_{part}_exps.weight"]
            assert tensor.tensor_type == GGMLQuantizationType.F16
            assert list(tensor.shape) == list(stacked.shape)[::-1]  # GGUF lists the fastest axis first
            assert tensor.data.tobytes() == stacked.tobytes()
            assert tensor.data_offset % 16384 == 0
    said = {"expertcache.expert_used_count": TOP_K, "expertcache.expert_count": EXPERTS, "expertcache.block_count": 3}
    for key, number in said.items():
        field = reader.get_field(key)
        assert field is not None
        assert field.contents() == number


def test_quantized_gguf_keeps_its_types_and_logical_shapes_everywhere(tmp_path: Path) -> None:
    writer = GGUFWriter(tmp_path / "q.gguf", "qwen3moe")
    writer.add_expert_used_count(2)
    raw = {"gate": (GGMLQuantizationType.Q4_K, 144), "up": (GGMLQuantizationType.Q6_K, 210),
           "down": (GGMLQuantizationType.Q8_0, 34 * 8)}  # fmt: skip
    for part, (kind, row) in raw.items():
        data = np.random.default_rng(3).integers(0, 256, (4, 2, row), np.uint8)
        writer.add_tensor(f"blk.0.ffn_{part}_exps.weight", data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    source = open_store(tmp_path / "q.gguf")
    assert [part[1:] for part in source.model.parts[0]] == [
        ("Q4_K", (2, 256), 288), ("Q6_K", (2, 256), 420), ("Q8_0", (2, 256), 544)
    ]  # fmt: skip
    through = pack(source, tmp_path / "a.safetensors", "safetensors")
    back = pack(through, tmp_path / "b.gguf", "gguf")
    assert through.model == back.model == source.model
    assert {t.tensor_type.name for t in GGUFReader(tmp_path / "b.gguf").tensors} == {"Q4_K", "Q6_K", "Q8_0"}
    assert stored(back) == stored(source)


@pytest.mark.parametrize("kind", KINDS)
def test_what_mlx_keeps_beside_its_weights_stays_in_the_record(kind: str, tmp_path: Path) -> None:
    model = weights(shapes=QUANTIZED, dtype=np.uint32)
    source = open_store(mlx(tmp_path / "source", model))
    assert list(source.layout.shape.parts[0]) == list(QUANTIZED)
    store = pack(source, tmp_path / "out", kind)
    check(store, records(model))
    assert store.metadata["parts"][0]["gate.scales"] == {"dtype": "U32", "shape": (4, 2)}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("blk.11.ffn_gate_exps.weight", (11, None, "gate")),
        ("blk.1.ffn_gate_up_exps.weight", (1, None, "gate_up")),
        ("blk.1.ffn_down_exps.bias", (1, None, "down.bias")),
        ("blk.1.ffn_down_shexp.weight", None),
        ("blk.1.ffn_gate_inp.weight", None),
        ("model.layers.3.mlp.switch_mlp.up_proj.scales", (3, None, "up.scales")),
        ("language_model.model.layers.3.mlp.switch_glu.up_proj.weight", (3, None, "up")),
        ("model.layers.3.mlp.experts.17.down_proj.weight", (3, 17, "down")),
        ("model.layers.3.block_sparse_moe.experts.7.w1.weight", (3, 7, "gate")),
        ("model.layers.3.block_sparse_moe.experts.7.w3.weight", (3, 7, "up")),
        ("model.layers.3.block_sparse_moe.experts.7.w2.weight", (3, 7, "down")),
        ("model.layers.3.mlp.experts.gate_up_proj_blocks", (3, None, "gate_up.blocks")),
        ("model.layers.3.mlp.experts.gate_up_proj", (3, None, "gate_up")),
        ("model.layers.3.mlp.shared_experts.gate_proj.weight", None),
        ("model.layers.3.mlp.shared_expert.gate_proj.weight", None),
        ("model.layers.3.mlp.gate_proj.weight", None),
        ("mtp.layers.0.mlp.experts.0.gate_proj.weight", None),
        ("model.layers.3.mlp.experts.17.down_proj.weight.more", None),
    ],
)
def test_a_tensor_is_known_by_its_name(name: str, expected: tuple[int, int | None, str] | None) -> None:
    assert role(name) == expected


def test_a_fused_projection_is_one_part(tmp_path: Path) -> None:
    model = weights(shapes={"gate_up": (8, 6), "down": (6, 4)})
    store = pack(open_store(gguf(tmp_path / "f.gguf", model)), tmp_path / "out", "safetensors")
    assert list(store.layout.shape.parts[2]) == ["gate_up", "down"]
    check(store, records(model))


def sharded(folder: Path, model: dict[int, dict[str, NDArray[Any]]]) -> None:
    """Two shards whose border goes through a layer."""
    mlx(folder, model)
    with safe_open(folder / "model.safetensors", "numpy") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    (folder / "model.safetensors").unlink()
    names, where = sorted(tensors), {}
    for number, part in enumerate((names[:2], names[2:]), 1):
        shard = f"model-{number:05d}-of-00002.safetensors"
        save_file({name: tensors[name] for name in part}, folder / shard)
        where |= dict.fromkeys(part, shard)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": where}))


@pytest.mark.parametrize("path", ["", "model.safetensors.index.json", "model-00002-of-00002.safetensors"])
def test_shards_are_one_store(path: str, tmp_path: Path) -> None:
    model = weights()
    sharded(tmp_path / "source", model)
    store = open_store(tmp_path / "source" / path)
    assert len(store.layout.files) == 2
    check(store, records(model))
    check(pack(store, tmp_path / "out", "blocks"), records(model))


@pytest.mark.rule("XC-LAYOUT-009")
def test_shards_that_are_exchanged_or_missing_are_refused(tmp_path: Path) -> None:
    sharded(tmp_path, weights())
    first, second = (tmp_path / f"model-0000{number}-of-00002.safetensors" for number in (1, 2))
    first.rename(tmp_path / "aside")
    with pytest.raises(WrongFile, match=r"00001-of-00002.*No such file"):
        open_store(tmp_path)
    second.rename(first)
    (tmp_path / "aside").rename(second)
    with pytest.raises(WrongFile, match="does not hold"):
        open_store(tmp_path)


def test_gguf_shards_are_one_store_and_say_which_they_are(tmp_path: Path) -> None:
    model = weights()
    writer = GGUFWriter(tmp_path / "m.gguf", "olmoe", split_max_tensors=4)
    writer.add_expert_used_count(TOP_K)
    for layer, parts in model.items():
        for part, stacked in parts.items():
            writer.add_tensor(f"blk.{layer}.ffn_{part}_exps.weight", stacked)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    first, second = (tmp_path / f"m-0000{number}-of-00002.gguf" for number in (1, 2))
    check(open_store(second), records(model))
    first.rename(tmp_path / "aside")
    second.rename(first)
    (tmp_path / "aside").rename(second)
    with pytest.raises(WrongFile, match="says that it is shard 2 of 2"):
        open_store(first)


def test_top_k_is_taken_from_beside_the_model_or_must_be_stated(tmp_path: Path) -> None:
    path = mlx(tmp_path, weights())
    assert open_store(path).geometry.top_k == TOP_K
    with pytest.raises(WrongFile, match=r"says top-k 2, not 3.*Cure"):
        open_store(path, top_k=3)
    (tmp_path / "config.json").write_text(json.dumps({"text_config": {"num_experts_per_tok": 1}}))
    assert open_store(path).geometry == Geometry(3, EXPERTS, 1, (144, 0, 144), LAYERS)
    (tmp_path / "config.json").unlink()
    with pytest.raises(WrongFile, match=r"does not say how many experts.*--top-k"):
        open_store(path)
    assert open_store(path, top_k=3).geometry.top_k == 3
    with pytest.raises(WrongFile, match=r"has 3 experts. Cure: state a --top-k from 1 to 3, not 4"):
        open_store(path, top_k=4)


def test_a_packed_file_may_be_renamed_and_a_packed_folder_moved(tmp_path: Path) -> None:
    source = open_store(mlx(tmp_path / "source", weights()))
    for kind in KINDS:
        pack(source, tmp_path / kind, kind)
        (tmp_path / kind).rename(tmp_path / f"{kind}.moved")
        assert open_store(tmp_path / f"{kind}.moved").fingerprint == verify(source)
    assert open_store(tmp_path / "layers.moved" / "manifest.json").kind == "layers"


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_opens_on_any_machine_through_short_and_interrupted_reads(kind: str, tmp_path: Path) -> None:
    store = pack(open_store(mlx(tmp_path / "source", weights())), tmp_path / "out", kind)
    files = {str(path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    faults = Faults(most_per_read=1000, over_limit="refuse", bytes_per_call=77, interrupt_every=3)

    def program(machine: SimulatedMachine) -> str:
        again = open_store(tmp_path / "out", machine)
        assert verify(again, machine) == again.fingerprint
        return again.fingerprint

    outcome = simulate(program, Replay(()), Simulation(files, faults=faults))
    outcome.check()
    assert outcome.value == store.fingerprint


@pytest.mark.parametrize("kind", KINDS)
def test_a_read_that_fails_while_a_store_is_opened_is_a_typed_error_and_leaves_no_file_open(
    kind: str, tmp_path: Path
) -> None:
    pack(open_store(mlx(tmp_path / "source", weights())), tmp_path / "out", kind)
    files = {str(path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    def program(machine: SimulatedMachine) -> str:
        try:
            return open_store(tmp_path / "out", machine).fingerprint
        except WrongFile as error:
            return str(error)

    reads = simulate(program, Replay(()), Simulation(files)).reads
    assert reads >= 3
    for number in range(1, reads + 1):
        outcome = simulate(program, Replay(()), Simulation(files, faults=Faults(errors={number: errno.EIO})))
        outcome.check()
        assert "cannot be read: Input/output error" in outcome.value


sizes = st.integers(1, 40)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    layers=st.sets(st.integers(0, 5), min_size=1, max_size=3), experts=st.integers(1, 5),
    shapes=st.lists(st.lists(sizes, max_size=3).map(tuple), min_size=3, max_size=3),
    dtype=st.sampled_from([np.uint8, np.float16, np.float32, np.int64, np.uint16]), kind=st.sampled_from(KINDS),
    alignment=st.sampled_from(ALIGNMENTS),
)  # fmt: skip
def test_any_shape_goes_through_any_format(
    layers: set[int], experts: int, shapes: list[tuple[int, ...]], dtype: Any, kind: str, alignment: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:  # fmt: skip
    folder = tmp_path_factory.mktemp("shape")
    model = weights(tuple(sorted(layers)), experts, dict(zip(SHAPES, shapes, strict=True)), dtype)
    source = open_store(mlx(folder / "source", model, top_k=1))
    store = pack(source, folder / "out", kind, alignment=alignment)
    check(store, records(model))
    assert store.model.parts == source.model.parts
    assert plan(source.model, kind, "out", alignment).layout.files == store.layout.files
    assert verify(store) == verify(source) == store.fingerprint
