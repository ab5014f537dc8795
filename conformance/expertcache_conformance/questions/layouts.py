"""Questions about layouts: of a declared one the rules determine every byte, of an own one the laws judge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import attrs

from expertcache_conformance.adapters.planning import OWN_LAYOUT, LayoutRequest
from expertcache_conformance.answers import Malformed
from expertcache_conformance.bounded import brief
from expertcache_conformance.questions.base import Question, Wrong, call, listed, rows, text, whole
from expertcache_spec.errors import InvalidModel
from expertcache_spec.layout import (
    Extent,
    Layout,
    Shape,
    broken_laws,
    bundled_rows,
    flat_blobs,
    packed_layers,
    record_blocks,
    stacked_tensors,
)
from expertcache_spec.model import Key


class Placed(NamedTuple):
    """An answer: the files of the implementation's own layout, and every record's extents."""

    files: dict[str, int]
    extents: dict[Key, tuple[Extent, ...]]


def joined(extents: Iterable[Extent]) -> list[Extent]:
    """The same bytes in the same order, extents that follow each other made one."""
    found: list[Extent] = []
    for extent in extents:
        if found and found[-1].file == extent.file and found[-1].end == extent.offset and extent.length > 0:
            found[-1] = found[-1]._replace(length=found[-1].length + extent.length)
        else:
            found.append(extent)
    return found


@attrs.frozen
class LayoutQuestion(Question):
    """Where every record of a model lies under one layout; `parts` is layer after layer, the layers from 0."""

    kind: ClassVar[str] = "layout"
    layout: str
    experts: int
    parts: tuple[tuple[tuple[str, int], ...], ...]
    alignment: int = 1
    header: int = 0
    rows: int = 1
    roll: int = 0

    def __attrs_post_init__(self) -> None:
        _ = self.shape, self.declared()  # what makes no shape or no layout makes no question

    @property
    def shape(self) -> Shape:
        """What is placed."""
        return Shape(self.experts, {layer: dict(parts) for layer, parts in enumerate(self.parts)})

    def declared(self) -> Layout | None:
        """The specification's layout; None for one of the implementation's own."""
        if self.layout == "packed-layers":
            return packed_layers(self.shape)
        if self.layout == "stacked-tensors":
            return stacked_tensors(self.shape, self.alignment, header=self.header)
        if self.layout == "record-blocks":
            return record_blocks(self.shape, self.alignment, header=self.header)
        if self.layout == "flat-blobs":
            return flat_blobs(self.shape, self.alignment, self.roll)
        return bundled_rows(self.shape, self.rows) if self.layout == "bundled-rows" else None

    @property
    def size(self) -> tuple[int, ...]:
        """Records and parts, then bytes."""
        every = [size for parts in self.parts for _, size in parts]
        return self.experts * len(every), self.rows, self.header, self.alignment, sum(every), self.roll

    def request(self) -> LayoutRequest:
        """What the implementation is asked with."""
        declared = self.declared()
        files = {} if declared is None else dict(declared.files)
        return LayoutRequest(self.layout, self.experts, self.shape.parts, self.alignment, self.header, self.rows, files,
                             self.roll)  # fmt: skip

    def ask(self, target: Any) -> Placed:
        """The extents of every record."""
        request, files = self.request(), dict[str, int]()
        if self.layout == OWN_LAYOUT:
            raw = call(target, "files", request)
            if not isinstance(raw, Mapping):
                raise Malformed(f"files is {brief(raw)}, not a mapping")
            files = {text("files", name): whole("files", size) for name, size in listed("files", raw.items())}
        extents = {
            key: tuple(Extent(*row) for row in rows("extents", call(target, "extents", request, key), "snn"))
            for key in self.shape.keys()  # noqa: SIM118
        }
        return Placed(files, extents)

    def judge(self, answer: Placed) -> Wrong | None:
        """Of a declared layout the order of the bytes, the laws, then which bytes they are; of an own one the laws."""
        declared = self.declared()
        if declared is None:
            own = Layout(OWN_LAYOUT, self.shape, answer.extents.__getitem__, answer.files, self.alignment)
            return self._unlawful(own, {"files": answer.files, "alignment": self.alignment})
        expected = {key: joined(extents) for key, extents in declared.extents.items()}
        wrong = next((key for key in expected if joined(answer.extents[key]) != expected[key]), None)
        if wrong is None:
            return None
        found = self._unlawful(attrs.evolve(declared, place=answer.extents.__getitem__, blocks=None), None)
        rule, note = "XC-LAYOUT-005", "other bytes than the record's"
        if joined(sorted(answer.extents[wrong])) == joined(sorted(expected[wrong])):
            rule, note = "XC-LAYOUT-004", "the parts are in another order"
        elif found:
            rule, note = found.rule, found.note
        return Wrong(rule, _record(wrong, expected[wrong]), _record(wrong, answer.extents[wrong]), note)

    def _unlawful(self, layout: Layout, expected: Any) -> Wrong | None:
        broken = broken_laws(layout)
        if not broken:
            return None
        extents = layout.extents
        neighbours = sorted((extent, key) for key, found in extents.items() for extent in found)
        suspects = {
            "XC-LAYOUT-001": (key for key, found in extents.items() if any(_outside(e, layout.files) for e in found)),
            "XC-LAYOUT-002": (key for (one, _), (other, key) in pairwise(neighbours)
                              if one.file == other.file and one.end > other.offset),
            "XC-LAYOUT-003": (key for key in extents if not layout.is_aligned(key)),
            "XC-LAYOUT-004": (key for key, found in extents.items()
                              if sum(e.length for e in found) != self.shape.record_bytes(key.layer)),
        }  # fmt: skip
        key = next(suspects[broken[0]])
        note = f"record ({key.layer},{key.expert}) of {self.shape.record_bytes(key.layer)} bytes {_SAID[broken[0]]}"
        return Wrong(broken[0], expected, _record(key, extents[key]), note)

    def smaller(self) -> Iterator[LayoutQuestion]:
        """Fewer records, layers and parts, fewer bytes, a smaller alignment."""
        changes: list[dict[str, Any]] = [{"parts": parts} for parts in self._fewer_parts()]
        for name in ("experts", "alignment", "rows", "header", "roll"):
            value = getattr(self, name)
            changes += [{name: less} for less in (value // 2, value - 1) if 0 <= less < value]
        for change in changes:
            try:
                if min(change.get("alignment", 1), change.get("rows", 1)) > 0:
                    yield attrs.evolve(self, **change)
            except InvalidModel:
                continue

    def _fewer_parts(self) -> Iterator[tuple[tuple[tuple[str, int], ...], ...]]:
        """Without a layer, without a part of one, with a smaller part."""
        for n, parts in enumerate(self.parts):
            before, after = self.parts[:n], self.parts[n + 1 :]
            yield before + after
            for i, (name, size) in enumerate(parts):
                yield (*before, parts[:i] + parts[i + 1 :], *after)
                for less in {1, size // 2, size - 1} - {0, size}:
                    yield (*before, (*parts[:i], (name, less), *parts[i + 1 :]), *after)

    def encode(self) -> dict[str, Any]:
        """Its fields."""
        return attrs.asdict(self) | {"parts": [[list(part) for part in parts] for parts in self.parts]}

    def __str__(self) -> str:
        layers = "; ".join(", ".join(f"{name} {size}" for name, size in parts) for parts in self.parts)
        more = {"alignment": self.alignment, "header": self.header, "rows": self.rows, "roll": self.roll}
        told = "".join(f", {name} {n}" for name, n in more.items() if n != (name not in ("header", "roll")))
        return f"extents of {self.layout}: {self.experts} experts a layer of {layers} bytes{told}"


_SAID = {
    "XC-LAYOUT-001": "leaves its file",
    "XC-LAYOUT-002": "overlaps another",
    "XC-LAYOUT-003": "begins off the alignment",
    "XC-LAYOUT-004": "has another number of bytes",
}


def _outside(extent: Extent, files: Mapping[str, int]) -> bool:
    return extent.file not in files or extent.offset < 0 or extent.length < 1 or extent.end > files[extent.file]


def _record(key: Key, extents: Iterable[Extent]) -> dict[str, Any]:
    return {"key": list(key), "extents": [list(extent) for extent in extents]}
