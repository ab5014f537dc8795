"""Keys, records, geometry and budgets: what is cached, how large it is, and how much room there is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import attrs

from expertcache_spec.contracts import ensure
from expertcache_spec.errors import InvalidBudget, InvalidModel, UnknownName

Scope = Literal["global", "layer"]
SCOPES: tuple[Scope, ...] = ("global", "layer")


class Key(NamedTuple):
    """One record of the model: everything that one expert of one layer needs (XC-MODEL-001).

    Expert 20 of layer 5 has nothing to do with expert 20 of layer 6. Keys order by layer, then expert: the last
    resort of every tie-break.
    """

    layer: int
    expert: int


@attrs.frozen(slots=False)
class Geometry:
    """The routed part of one model.

    `experts` is the number of experts a routed layer has, `top_k` how many a token asks for, `record_bytes` the bytes
    of one record in each of the `layers` layers, or None where nobody knows them. `routed` lists the layers that have
    experts (all of them unless stated: GLM's first three are dense).

    Raises `InvalidModel` on a size, count or layer that no model has.
    """

    layers: int
    experts: int
    top_k: int
    record_bytes: tuple[int, ...] | None = None
    routed: tuple[int, ...] = attrs.field(
        default=attrs.Factory(
            lambda self: tuple(range(self.layers)) if type(self.layers) is int else (), takes_self=True
        )
    )

    def __attrs_post_init__(self) -> None:
        for name in ("layers", "experts", "top_k"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise InvalidModel(
                    f"{name} is {value!r}", where="geometry", cure=f"give a whole number of {name} from 1"
                )
        if self.top_k > self.experts:
            raise InvalidModel(
                f"top_k {self.top_k} exceeds {self.experts} experts",
                where="geometry",
                cure="a token asks for at most as many experts as a layer has",
            )
        for name in ("record_bytes", "routed"):
            value = getattr(self, name)
            if not isinstance(value, Sequence) and (value is not None or name == "routed"):
                raise InvalidModel(
                    f"{name} is {value!r}, not a tuple", where="geometry", cure="list whole numbers, one for each layer"
                )
        if self.record_bytes is not None and (
            len(self.record_bytes) != self.layers
            or any(type(b) is not int or b < 0 for b in self.record_bytes)
            or any(self.record_bytes[layer] < 1 for layer in self.routed if self._has_layer(layer))
        ):
            raise InvalidModel(
                "record_bytes does not give every layer a size",
                where="geometry",
                cure=f"list {self.layers} whole numbers of bytes, at least 1 in every routed layer",
            )
        if not self.routed or list(self.routed) != sorted({x for x in self.routed if self._has_layer(x)}):
            raise InvalidModel(
                f"routed layers {self.routed!r}",
                where="geometry",
                cure=f"list distinct layers between 0 and {self.layers - 1} in rising order",
            )

    def _has_layer(self, layer: int) -> bool:
        return type(layer) is int and 0 <= layer < self.layers

    def size(self, layer: int) -> int:
        """Bytes of one record of `layer`; raises `InvalidBudget` where the size is unknown (XC-MODEL-004)."""
        if self.record_bytes is None:
            raise InvalidBudget(
                "the record size of this model is unknown",
                where=f"layer {layer}",
                cure="state the bytes of one record, or budget in slots",
            )
        return self.record_bytes[layer]

    @property
    def token_cycle_bytes(self) -> int:
        """T, the bytes that one token asks for: the sum over routed layers of top_k times the record (XC-MODEL-007)."""
        return sum(self.top_k * self.size(layer) for layer in self.routed)

    @property
    def token_cycle_slots(self) -> int:
        """The records that one token asks for, over all routed layers."""
        return self.top_k * len(self.routed)

    def keys(self) -> Iterator[Key]:
        """Every key of the model, in order."""
        return (Key(layer, expert) for layer in self.routed for expert in range(self.experts))


@attrs.frozen(slots=False)
class Budget:
    """How much may be resident: `slots` records, `bytes` bytes, or both, and then the tighter wins (XC-MODEL-003).

    Zero is legal and keeps nothing. Raises `InvalidBudget` when neither is given or one is negative.
    """

    slots: int | None = None
    bytes: int | None = None

    def __attrs_post_init__(self) -> None:
        if self.slots is None and self.bytes is None:
            raise InvalidBudget("neither slots nor bytes", where="budget", cure="give --slots 1889 or --budget 4000MiB")
        for name, value in (("slots", self.slots), ("bytes", self.bytes)):
            if value is not None and (type(value) is not int or value < 0):
                raise InvalidBudget(f"{name} is {value!r}", where="budget", cure="give a whole number from 0")

    @property
    def is_zero(self) -> bool:
        """Whether nothing can ever be kept (XC-RES-014)."""
        return self.slots == 0 or self.bytes == 0

    def split(self, scope: Scope, geometry: Geometry) -> dict[int, Budget]:
        """The budget of each routed layer under scope `layer`, else one budget under the key -1 (XC-MODEL-006)."""
        if scope not in SCOPES:
            raise UnknownName(f"scope {scope!r}", cure=f"one of {', '.join(SCOPES)}")
        if scope == "global":
            return {-1: self}
        parts = len(geometry.routed)
        slots = [None] * parts if self.slots is None else quotas(self.slots, parts)
        sizes = [None] * parts if self.bytes is None else quotas(self.bytes, parts)
        return {layer: Budget(s, b) for layer, s, b in zip(geometry.routed, slots, sizes, strict=True)}


@ensure(lambda capacity, result: sum(result) == capacity, "XC-MODEL-006")
def quotas(capacity: int, layers: int) -> list[int]:
    """`capacity` over `layers`: capacity // layers each, and one more for the first capacity mod layers of them."""
    share, rest = divmod(capacity, layers)
    return [share + 1] * rest + [share] * (layers - rest)


UNITS = {
    "B": 1,
    "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
}  # fmt: skip
"""Unit to bytes. GB is 10^9 and GiB is 2^30; nothing else is guessed."""

_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?) ?([A-Za-z]*)")
_LARGE = re.compile(r"[0-9]{19,}(?:\.[0-9]*)? ?[A-Za-z]*|[0-9]+\.[0-9]{10,} ?[A-Za-z]*")


@attrs.frozen(slots=False)
class Size:
    """A parsed size: its bytes and the unit that was taken, so that a report can say which (XC-MODEL-005)."""

    bytes: int
    unit: str


def parse_size(text: str) -> Size:
    """Bytes of `4000MiB`, `17.5 GiB`, `20GB`: a number and a unit from `UNITS`, whole bytes.

    Raises `InvalidBudget` on anything else. A bare number is refused: engines read it as slots, bytes or GiB.
    """
    match = _SIZE.fullmatch(text.strip())
    number, unit = match.groups() if match else ("", "")
    if _LARGE.fullmatch(text.strip()):
        raise InvalidBudget(
            f"{text!r:.60} has too many digits", where="size", cure="write 18 at most, and 9 after the point"
        )
    if unit not in UNITS:
        near = [u for u in UNITS if u.lower() == unit.lower() or (unit and u[0].lower() == unit[0].lower())]
        raise InvalidBudget(
            f"no size {text!r}",
            where="size",
            cure=f"write a number and a unit, {' or '.join(near or [unit for unit in UNITS if unit != 'kB'])}; "
            "for a count of records use slots",
        )
    whole, _, fraction = number.partition(".")
    value, rest = divmod(int(whole + fraction) * UNITS[unit], 10 ** len(fraction))
    if rest:
        raise InvalidBudget(f"{text!r} is not a whole number of bytes", where="size", cure="round it to bytes")
    return Size(value, unit)


def format_size(count: int, unit: str = "") -> str:
    """`count` bytes as text; in `unit` when given, else in the largest binary unit below it. Two decimals.

    `parse_size("20GiB")` prints as `20.00 GiB`, never as 21.47 of anything else. Raises `UnknownName` for another unit.
    """
    if unit and unit not in UNITS:
        raise UnknownName(f"unit {unit!r}", where="size", cure=f"one of {', '.join(UNITS)}")
    unit = unit or next((u for u in ("TiB", "GiB", "MiB", "KiB") if count >= UNITS[u]), "B")
    return f"{count} B" if unit == "B" else f"{count / UNITS[unit]:.2f} {unit}"
