"""The manifest: what `pack` records beside the bytes, in `manifest.json` or inside the one file.

Version 1, one JSON object: format, version, kind, alignment; model (layers, experts, top_k); parts (layer to name,
dtype, shape, bytes of each); records (layer to the SHA-256 of each record, by expert); content (`contents.content`);
probes (file to `contents.probe`); about. Folders also have offsets (layer to file and the offset of each record), sizes
(file to bytes) and fingerprint (of the layout and the content: `expertcache_spec.layout.fingerprint`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import attrs

from expertcache_reference.stores.contents import content
from expertcache_reference.stores.store import KINDS, Model, Part, geometry_of
from expertcache_spec.errors import InvalidModel
from expertcache_spec.layout.files import WrongFile
from expertcache_spec.model import Key

FORMAT, VERSION = "expertcache-store", 1
UNKNOWN = "0" * 64
"""Stands for a digest that is not known yet; every digest has its length."""
_DIGEST = re.compile("[0-9a-f]{64}")
_CURE = "the manifest is damaged or of another version: pack the model again"


@attrs.frozen(slots=False)
class Manifest:
    """What is recorded of one store, without where its records lie."""

    kind: str
    alignment: int
    model: Model
    records: Mapping[Key, str]
    content: str
    probes: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        """The JSON object; equal manifests give equal text."""
        geometry = self.model.geometry
        return {
            "format": FORMAT,
            "version": VERSION,
            "kind": self.kind,
            "alignment": self.alignment,
            "model": {"layers": geometry.layers, "experts": geometry.experts, "top_k": geometry.top_k},
            "parts": {str(layer): [list(part) for part in parts] for layer, parts in self.model.parts.items()},
            "records": {
                str(layer): [self.records[Key(layer, expert)] for expert in range(geometry.experts)]
                for layer in self.model.parts
            },
            "content": self.content,
            "probes": dict(self.probes),
            "about": dict(self.model.about),
        }


class Fields:
    """A JSON object whose fields are taken with their type; raises `WrongFile` naming the field."""

    def __init__(self, value: object, where: str) -> None:
        self.where = where
        if not isinstance(value, dict):
            raise self.wrong("is no object")
        self.value: dict[str, Any] = value

    def wrong(self, what: str) -> WrongFile:
        """The refusal."""
        return WrongFile(what, where=self.where, cure=_CURE)

    def take(self, name: str, kind: type) -> Any:
        """The field; a whole number is not negative."""
        value: Any = self.value.get(name)
        if type(value) is not kind or (isinstance(value, int) and value < 0):
            raise self.wrong(f"field {name!r} is not what it should be")
        return value

    def layers(self, name: str) -> dict[int, Any]:
        """A field that maps layers, in rising order."""
        value: dict[str, Any] = self.take(name, dict)
        if not all(re.fullmatch("0|[1-9][0-9]{0,5}", layer) for layer in value):
            raise self.wrong(f"field {name!r} names something that is no layer")
        return {int(layer): value[layer] for layer in sorted(value, key=int)}

    def strings(self, name: str, pattern: re.Pattern[str] | None = None) -> dict[str, str]:
        """A field that maps strings to strings."""
        value: dict[str, str] = self.take(name, dict)
        if not all(isinstance(text, str) and (pattern is None or pattern.fullmatch(text)) for text in value.values()):
            raise self.wrong(f"field {name!r} holds something else than text")
        return value


def decode(value: object, where: str) -> Manifest:
    """The manifest of a JSON object; raises `WrongFile` for one that does not agree with itself."""
    fields = Fields(value, where)
    if (fields.value.get("format"), fields.take("version", int)) != (FORMAT, VERSION):
        raise WrongFile(f"no manifest of {FORMAT} version {VERSION}", where=where, cure=_CURE)
    numbers = Fields(fields.take("model", dict), where)
    layers, experts, top_k = [int(numbers.take(name, int)) for name in ("layers", "experts", "top_k")]
    parts = {layer: _parts(rows, fields) for layer, rows in fields.layers("parts").items()}
    if not parts or max(parts) >= layers or layers > 10**6:
        raise fields.wrong("no layers, or more than it says")
    try:
        model = Model(geometry_of(layers, experts, top_k, parts), parts, fields.strings("about"))
    except InvalidModel as error:
        raise fields.wrong(f"describes no model: {error.what}") from error
    kind = fields.take("kind", str)
    if kind not in KINDS:
        raise fields.wrong(f"unknown kind {kind!r}")
    records = _records(model, fields)
    found = Manifest(
        kind, fields.take("alignment", int), model, records, fields.take("content", str),
        fields.strings("probes", _DIGEST),
    )  # fmt: skip
    if content(model, records) != found.content:
        raise fields.wrong("its records do not have its fingerprint")
    return found


def _parts(rows: object, fields: Fields) -> tuple[Part, ...]:
    if not isinstance(rows, list) or not rows or len(rows) > 100:
        raise fields.wrong("field 'parts' lists no parts")
    parts = tuple(_part(row, fields) for row in rows)
    if len({part.name for part in parts}) < len(parts):
        raise fields.wrong("a part stands twice")
    return parts


def _part(row: object, fields: Fields) -> Part:
    name, dtype, shape, size = row if isinstance(row, list) and len(row) == 4 else ("", "", None, 0)
    whole = [*shape, size] if isinstance(shape, list) else [0]
    if not (isinstance(name, str) and isinstance(dtype, str)) or any(type(n) is not int or n < 1 for n in whole):
        raise fields.wrong("a part is not its name, dtype, shape and bytes")
    return Part(name, dtype, tuple(whole[:-1]), size)


def _records(model: Model, fields: Fields) -> dict[Key, str]:
    found = fields.layers("records")
    if list(found) != list(model.parts):
        raise fields.wrong("the layers of its records are not those of its parts")
    records: dict[Key, str] = {}
    for layer, digests in found.items():
        if not isinstance(digests, list) or len(digests) != model.geometry.experts:
            raise fields.wrong(f"layer {layer} does not list every expert")
        if not all(isinstance(text, str) and _DIGEST.fullmatch(text) for text in digests):
            raise fields.wrong(f"layer {layer} lists something that is no digest")
        records |= {Key(layer, expert): text for expert, text in enumerate(digests)}
    return records
