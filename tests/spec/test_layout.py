"""Layouts: the published offsets, the laws of every layout, equal bytes under any two, and the reads they take."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from random import Random
from types import MappingProxyType

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from expertcache_spec.errors import InvalidModel
from expertcache_spec.layout import (
    Extent,
    FoundFile,
    Layout,
    Read,
    ReadCost,
    Shape,
    broken_laws,
    bundled_rows,
    check_files,
    coalesce,
    fingerprint,
    flat_blobs,
    gather,
    overlay,
    packed_layers,
    reads_of,
    record_blocks,
    resident_prefix,
    stacked_tensors,
    wasted,
    window,
    with_side_table,
    written,
)
from expertcache_spec.layout.files import WrongFile
from expertcache_spec.model import Key

NINE = ("gate.weight", "gate.scales", "gate.biases", "up.weight", "up.scales", "up.biases", "down.weight",
        "down.scales", "down.biases")  # fmt: skip
ROWS = 4
KINDS: dict[str, Callable[[Shape], Layout]] = {
    "stacked": stacked_tensors,
    "stacked-odd": lambda shape: stacked_tensors(shape, 64, header=1234),
    "packed": packed_layers,
    "blocks": lambda shape: record_blocks(shape, 64, header=5),
    "blobs": lambda shape: flat_blobs(shape, 16, roll=600),
    "blobs-by-heat": lambda shape: flat_blobs(shape, 16, 600, sorted(shape.keys(), key=lambda key: key[::-1])),
    "bundles": lambda shape: bundled_rows(shape, ROWS),
    "prefix": lambda shape: resident_prefix(packed_layers(shape), 1),
    "table": lambda shape: with_side_table(record_blocks(shape, 64), "n-gram", 10, 12, page=64),
}  # fmt: skip
SHAPE = Shape(5, {0: {"gate": 40, "up": 40, "down": 52}, 2: {"gate": 40, "up": 40, "down": 60}, 3: {"all": 12}})


def content(key: Key) -> bytes:
    """Bytes of a record that no other has."""
    return Random(f"{key}").randbytes(SHAPE.record_bytes(key.layer))


def nine(weight: int, small: int) -> Shape:
    """The shape of the published packed records: weights, scales and biases of three projections."""
    return Shape(512, {layer: dict(zip(NINE, (weight, small, small) * 3, strict=True)) for layer in range(60)})


# ---------------------------------------------------------------------------------------------- published


@pytest.mark.rule("XC-LAYOUT-004")
@pytest.mark.parametrize(
    ("weight", "small", "record", "offsets"),
    [
        (2097152, 131072, 7077888,
         [0, 2097152, 2228224, 2359296, 4456448, 4587520, 4718592, 6815744, 6946816]),
        (1048576, 131072, 3932160,
         [0, 1048576, 1179648, 1310720, 2359296, 2490368, 2621440, 3670016, 3801088]),
    ],
)  # fmt: skip
def test_the_published_packed_offsets_come_out(weight: int, small: int, record: int, offsets: list[int]) -> None:
    layout = packed_layers(nine(weight, small))
    assert [extent.offset for extent in layout.place(Key(7, 0))] == offsets
    assert [extent.offset for extent in layout.place(Key(7, 3))] == [3 * record + offset for offset in offsets]
    assert {extent.file for extent in layout.place(Key(7, 3))} == {"layer_07.bin"}
    assert layout.files["layer_07.bin"] == 512 * record
    assert record % 16384 == 0


@pytest.mark.rule("XC-LAYOUT-001")
def test_the_published_layer_file_has_its_size() -> None:
    assert packed_layers(nine(2097152, 131072)).files["layer_59.bin"] == 3_623_878_656


@pytest.mark.rule("XC-LAYOUT-006")
def test_the_published_read_counts_are_nine_three_and_one_a_record() -> None:
    """485.8, 161.9 and 54.0 reads a token: nine sub-slices, one slice a projection, one block."""
    shape = nine(64, 4)
    token = [Key(layer, expert) for layer in range(6) for expert in (3, 77, 200)]
    slices = len(reads_of(stacked_tensors(shape), token))
    projections = Shape(512, {layer: {"gate": 72, "up": 72, "down": 72} for layer in range(60)})
    thirds = len(reads_of(stacked_tensors(projections), token))
    blocks = len(reads_of(packed_layers(shape), token))
    assert (slices, thirds, blocks) == (162, 54, 18)
    assert (round(485.8 / 54.0, 1), round(161.9 / 54.0, 1)) == (slices / blocks, thirds / blocks)


@pytest.mark.rule("XC-LAYOUT-008")
def test_the_reported_windows_come_out() -> None:
    assert window(Extent("f", 5000, 20000), 16384) == (Extent("f", 0, 32768), 5000)
    assert window(Extent("f", 0, 1970176), 65536) == (Extent("f", 0, 2031616), 0)
    assert window(Extent("f", 0, 1970176), 65536, 1970200) == (Extent("f", 0, 1970200), 0)
    with pytest.raises(InvalidModel, match="window"):
        window(Extent("f", 0, 1970176), 65536, 1970175)


@pytest.mark.rule("XC-LAYOUT-008")
@given(st.integers(0, 300), st.integers(1, 300), st.sampled_from([1, 4, 16, 64]), st.integers(0, 100))
def test_a_window_holds_its_extent_and_stays_in_the_file(offset: int, length: int, grain: int, tail: int) -> None:
    extent, size = Extent("f", offset, length), offset + length + tail
    read, begin = window(extent, grain, size)
    assert read.offset % grain == 0
    assert read.end % grain == 0 or read.end == size
    assert 0 <= begin < grain
    assert read.offset + begin == offset
    assert extent.end <= read.end <= size
    data = {"f": bytes(n % 251 for n in range(size))}
    assert gather((read,), data)[begin : begin + length] == gather((extent,), data)


# ---------------------------------------------------------------------------------------------- laws


@pytest.mark.rule("XC-LAYOUT-001", "XC-LAYOUT-002", "XC-LAYOUT-003", "XC-LAYOUT-004")
@pytest.mark.parametrize("kind", KINDS)
def test_every_layout_obeys_the_laws(kind: str) -> None:
    assert broken_laws(KINDS[kind](SHAPE)) == []


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    """Layers of unlike records whose parts are whole rows, some layers dense."""
    sizes = st.integers(1, 9).map(lambda n: n * ROWS)
    parts = st.lists(sizes, min_size=1, max_size=4).map(lambda found: {f"part{n}": s for n, s in enumerate(found)})
    return Shape(draw(st.integers(1, 4)), draw(st.dictionaries(st.integers(0, 5), parts, min_size=1, max_size=3)))


@pytest.mark.rule("XC-LAYOUT-001", "XC-LAYOUT-002", "XC-LAYOUT-003", "XC-LAYOUT-004", "XC-LAYOUT-005")
@given(shapes(), st.sampled_from(list(KINDS)), st.sampled_from(list(KINDS)))
def test_any_two_layouts_of_any_shape_are_lawful_and_give_the_same_bytes(shape: Shape, one: str, two: str) -> None:
    def bytes_of(key: Key) -> bytes:
        return Random(f"{key}").randbytes(shape.record_bytes(key.layer))

    layouts = [KINDS[one](shape), KINDS[two](shape)]
    files = [written(layout, bytes_of) for layout in layouts]
    for layout in layouts:
        assert broken_laws(layout) == []
    for key in shape.keys():  # noqa: SIM118
        assert [gather(layout.extents[key], f) for layout, f in zip(layouts, files, strict=True)] == [bytes_of(key)] * 2


@pytest.mark.rule("XC-LAYOUT-005")
@pytest.mark.parametrize("kind", KINDS)
def test_an_overlay_gives_the_bytes_of_the_stacked_tensor_and_owns_none(kind: str) -> None:
    layout, stacked = KINDS[kind](SHAPE), stacked_tensors(SHAPE)
    tiles, tensor = written(layout, content), written(stacked, content)
    for layer, parts in SHAPE.parts.items():
        for part, size in parts.items():
            view, whole = overlay(layout, layer, part), overlay(stacked, layer, part)
            assert gather(view, tiles) == gather(whole, tensor)
            assert [read.extent.length for read in coalesce(whole)] == [
                size * SHAPE.experts
            ]  # one run in its own files
            assert {extent.file for extent in view} <= set(layout.files)
            assert view != whole or kind == "stacked"


def spoiled(layout: Layout, key: Key, extents: tuple[Extent, ...]) -> Layout:
    """The layout with one record placed elsewhere."""
    place = layout.place
    return attrs.evolve(layout, place=lambda each: extents if each == key else place(each), blocks=None)


@pytest.mark.parametrize(
    ("extents", "broken"),
    [
        pytest.param([(660, 132)], ["XC-LAYOUT-001"], marks=pytest.mark.rule("XC-LAYOUT-001")),
        pytest.param([(0, 132)], ["XC-LAYOUT-002"], marks=pytest.mark.rule("XC-LAYOUT-002")),
        pytest.param([(529, 131)], ["XC-LAYOUT-003", "XC-LAYOUT-004"], marks=pytest.mark.rule("XC-LAYOUT-003")),
        pytest.param([(528, 131)], ["XC-LAYOUT-004"], marks=pytest.mark.rule("XC-LAYOUT-004")),
        pytest.param([(528, 132), (528, 0)], ["XC-LAYOUT-001"], marks=pytest.mark.rule("XC-LAYOUT-001")),
        pytest.param([(-4, 132)], ["XC-LAYOUT-001", "XC-LAYOUT-002", "XC-LAYOUT-003"]),
    ],
)
def test_a_misplaced_record_breaks_its_law(extents: list[tuple[int, int]], broken: list[str]) -> None:
    shape = Shape(5, {0: {"gate": 40, "up": 40, "down": 52}})
    layout = attrs.evolve(packed_layers(shape), alignment=132)
    where = tuple(Extent("layer_00.bin", offset, length) for offset, length in extents)
    assert broken_laws(spoiled(layout, Key(0, 4), where)) == broken


@pytest.mark.rule("XC-LAYOUT-004")
def test_exchanged_parts_show_in_the_bytes_and_not_in_the_extents() -> None:
    shape = Shape(2, {0: {"gate": 4, "up": 4, "down": 4}})
    right = stacked_tensors(shape)
    gate, up, down = right.place(Key(0, 1))
    wrong = spoiled(right, Key(0, 1), (up, gate, down))
    files = written(right, {Key(0, 0): bytes(12), Key(0, 1): b"gateup..down"}.__getitem__)
    assert broken_laws(wrong) == []
    assert gather(right.extents[Key(0, 1)], files) == b"gateup..down"
    assert gather(wrong.extents[Key(0, 1)], files) == b"up..gatedown"


@pytest.mark.rule("XC-LAYOUT-002", "XC-LAYOUT-007")
def test_a_table_follows_the_weights_on_a_page_and_moves_none_of_them() -> None:
    before = record_blocks(SHAPE, 64)
    layout = with_side_table(with_side_table(before, "n-gram", 10, 12, 64), "engram", 3, 100, 64)
    assert broken_laws(layout) == []
    assert layout.extents == before.extents
    first, second = layout.tables.values()
    assert before.files["experts.bin"] <= first.base.offset < before.files["experts.bin"] + 64
    assert first.base.offset % 64 == second.base.offset % 64 == 0
    assert first.base.end <= second.base.offset
    assert layout.files["experts.bin"] == second.base.end
    assert first.row(9) == Extent("experts.bin", first.base.offset + 108, 12)
    for wrong in (-1, 10):
        with pytest.raises(InvalidModel, match="row"):
            first.row(wrong)
    overlapping = attrs.evolve(
        layout, tables=MappingProxyType({"x": attrs.evolve(first, base=Extent("experts.bin", 0, 12))})
    )
    assert broken_laws(overlapping) == ["XC-LAYOUT-002"]


@pytest.mark.rule("XC-LAYOUT-007", "XC-LAYOUT-010")
def test_a_resident_prefix_causes_no_read_and_tables_are_read_all_the_same() -> None:
    layout = resident_prefix(with_side_table(packed_layers(SHAPE), "n-gram", 10, 12), 2)
    assert layout.resident == {0, 2}
    assert {key.layer for key in layout.streamed()} == {3}
    assert [read.extent.file for read in reads_of(layout, SHAPE.keys())] == ["layer_03.bin"]
    assert layout.tables["n-gram"].row(0).length == 12


@pytest.mark.parametrize(
    ("rows", "row_bytes", "page"), [(0, 12, 64), (10, 0, 64), (10, 12, 0), (10, 12, -5), (1, 1.5, 64)]
)
def test_a_table_without_rows_bytes_or_a_page_is_refused(rows: int, row_bytes: int, page: int) -> None:
    with pytest.raises(InvalidModel, match="side table"):
        with_side_table(packed_layers(SHAPE), "n-gram", rows, row_bytes, page)


@pytest.mark.parametrize("layers", [-1, 1.0, None])
def test_what_is_no_number_of_layers_is_no_prefix(layers: int) -> None:
    with pytest.raises(InvalidModel, match="resident prefix"):
        resident_prefix(packed_layers(SHAPE), layers)
    assert resident_prefix(packed_layers(SHAPE), 0).resident == frozenset()
    assert resident_prefix(packed_layers(SHAPE), 9).resident == {0, 2, 3}


def test_a_file_of_blobs_is_filled_to_the_byte() -> None:
    assert list(flat_blobs(Shape(5, {0: {"all": 8}}), 8, roll=16).files.values()) == [16, 16, 8]
    assert list(flat_blobs(Shape(5, {0: {"all": 8}}), 8, roll=15).files.values()) == [8] * 5


def test_blobs_roll_before_a_file_grows_too_large() -> None:
    layout = flat_blobs(SHAPE, 16, roll=600)
    assert list(layout.files) == [f"experts-{number:05d}.bin" for number in range(1, len(layout.files) + 1)]
    assert max(layout.files.values()) <= 600
    assert len(layout.files) > 2
    with pytest.raises(InvalidModel, match="blobs"):
        flat_blobs(SHAPE, 16, 600, SHAPE.keys()[1:])


def test_a_bundle_is_a_neuron() -> None:
    layout = bundled_rows(Shape(2, {0: {"gate": 8, "up": 8, "down": 8}}), 4)
    neuron = [extent for part in range(3) for extent in [layout.extents[Key(0, 1)][4 * part + 2]]]
    assert neuron == [Extent("bundles.bin", 24 + 12 + 2 * place, 2) for place in range(3)]
    assert len(coalesce(neuron)) == 1
    assert len(coalesce(layout.extents[Key(0, 1)])) == 1
    with pytest.raises(InvalidModel, match="bundles"):
        bundled_rows(Shape(2, {0: {"gate": 9}}), 4)


# ---------------------------------------------------------------------------------------------- coalescing


placed = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 60), st.integers(1, 9)), max_size=12).map(
    lambda found: [Extent(*each) for each in found]
)


@pytest.mark.rule("XC-LAYOUT-006")
@given(placed, st.integers(0, 20), st.none() | st.integers(1, 40))
def test_coalescing_covers_every_extent_once_and_joins_only_near_ones(
    extents: list[Extent], gap: int, most: int | None
) -> None:
    reads = coalesce(extents, gap, most)
    assert sorted(extent for read in reads for extent in read.wanted) == sorted(extents)
    for read in reads:
        assert all(e.file == read.extent.file for e in read.wanted)
        assert (min(e.offset for e in read.wanted), max(e.end for e in read.wanted)) == (
            read.extent.offset,
            read.extent.end,
        )
        covered = {n for e in read.wanted for n in range(e.offset, e.end)}
        holes = [b - a - 1 for a, b in pairwise(sorted(covered))]
        assert max(holes, default=0) <= gap
        assert most is None or len(read.wanted) == 1 or read.extent.length <= most
    if most is None:
        for one, two in pairwise(reads):
            assert one.extent.file != two.extent.file or two.extent.offset - one.extent.end > gap


@pytest.mark.rule("XC-LAYOUT-006")
def test_a_request_may_be_as_long_as_the_bound_and_no_longer() -> None:
    two = [Extent("f", 0, 4), Extent("f", 6, 4)]
    assert [len(coalesce(two, 2, most)) for most in (9, 10, 11)] == [2, 1, 1]


def test_bytes_that_are_wanted_twice_are_not_wasted_and_hide_no_gap() -> None:
    twice = [Extent("f", 10, 4), Extent("f", 10, 4), Extent("f", 12, 6), Extent("f", 21, 1)]
    (read,) = coalesce(twice, gap=3)
    assert read.extent == Extent("f", 10, 12)
    assert wasted([read]) == 3
    assert wasted([Read(Extent("f", 8, 16), read.wanted)]) == 7
    assert wasted(coalesce(twice[:2])) == 0


@pytest.mark.rule("XC-LAYOUT-006")
@given(placed, st.integers(0, 20), st.integers(0, 20))
def test_a_wider_gap_never_makes_more_requests_and_never_reads_fewer_bytes(
    extents: list[Extent], one: int, two: int
) -> None:
    narrow, wide = (coalesce(extents, gap) for gap in sorted((one, two)))
    assert len(wide) <= len(narrow)
    assert sum(r.extent.length for r in wide) >= sum(r.extent.length for r in narrow)


@pytest.mark.rule("XC-LAYOUT-006")
def test_a_gap_is_worth_reading_while_its_bytes_cost_less_than_a_request() -> None:
    cost = ReadCost(request=73e-6, bandwidth=11.3e9)
    assert cost.worthwhile_gap == 824_900
    for gap, better in ((cost.worthwhile_gap - 1000, True), (cost.worthwhile_gap + 1000, False)):
        two = [Extent("f", 0, 1000), Extent("f", 1000 + gap, 1000)]
        joined, apart = coalesce(two, gap), coalesce(two)
        assert (len(joined), wasted(joined), len(apart), wasted(apart)) == (1, gap, 2, 0)
        assert (cost.of(1, 2000 + gap) < cost.of(2, 2000)) == better


def test_blocks_of_one_expert_take_a_ninth_of_the_reads_and_of_their_fixed_time() -> None:
    cost, shape = ReadCost(73e-6, 11.3e9), nine(2097152, 131072)
    token = [Key(layer, 7 * layer % 512) for layer in range(60)]
    times = []
    for layout in (stacked_tensors(shape), packed_layers(shape)):
        reads = reads_of(layout, token)
        times.append(cost.of(len(reads), sum(read.extent.length for read in reads)))
    assert times[0] - times[1] == pytest.approx(60 * 8 * 73e-6)


# ---------------------------------------------------------------------------------------------- files


@pytest.mark.rule("XC-LAYOUT-009")
def test_only_whole_files_of_the_same_model_and_layout_are_accepted() -> None:
    layout = packed_layers(Shape(4, {0: {"all": 100}}), "layer.bin".format)
    print_ = fingerprint(layout, "model A")
    check_files(layout, "model A", {"layer.bin": FoundFile(400, print_), "other": FoundFile(1, "")})
    for found, what in (
        ({}, "missing"),
        (
            {"layer.bin": FoundFile(350, print_)},
            r"350 bytes, expected 400; first incomplete record Key\(layer=0, expert=3\)",
        ),
        ({"layer.bin": FoundFile(401, print_)}, "401 bytes, expected 400"),
        ({"layer.bin": FoundFile(400, fingerprint(layout, "model B"))}, "another model or layout"),
    ):
        with pytest.raises(WrongFile, match=what):
            check_files(layout, "model A", found)


@pytest.mark.rule("XC-LAYOUT-009")
def test_two_formats_of_one_name_and_size_have_two_fingerprints() -> None:
    one = Shape(4, {0: {"gate": 40, "up": 60}})
    two = Shape(4, {0: {"gate": 60, "up": 40}})
    layouts = [
        packed_layers(one),
        packed_layers(two),
        attrs.evolve(packed_layers(one), version=2),
        bundled_rows(one, 4),
    ]
    assert layouts[0].files == layouts[1].files
    assert len({fingerprint(layout, "model") for layout in layouts}) == 4
    assert fingerprint(packed_layers(one), "model") == fingerprint(packed_layers(one), "model")
    tables = [with_side_table(layouts[0], "n-gram", rows, 12 // rows) for rows in (2, 3)]
    assert tables[0].files == tables[1].files
    assert len({fingerprint(layout, "model") for layout in tables}) == 2


@pytest.mark.parametrize(("experts", "parts"), [(0, {0: {"a": 1}}), (1, {}), (1, {0: {}}), (1, {0: {"a": 0}})])
def test_a_shape_without_bytes_is_refused(experts: int, parts: dict[int, dict[str, int]]) -> None:
    with pytest.raises(InvalidModel, match="shape"):
        Shape(experts, parts)
