"""Hardware files: the costs of one machine with one model, in TOML, strictly read.

name = "a laptop"
about = "where every number comes from"

[compute]            # nanoseconds; each is 0 where it is left out
route = 1_500_000
gate_up = 45_000
down = 30_000
combine = 5_000
dispatch = 10_000
handoff = 0

[storage]            # bandwidth in bytes a second, latency in nanoseconds
workers = 9
lanes = 1
bandwidth = 20_000_000_000
latency = 20_000
warm_percent = 0     # with warm_bandwidth and warm_latency where it is not 0

[record]             # the requests that read a record, in proportion; fan_out cuts those of whole pages
gate_up = [1, 1]
down = [1]
fan_out = 1
page = 16_384
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from importlib.resources import files
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, ClassVar

import attrs

from expertcache_spec.errors import ExpertCacheError, UnknownName
from expertcache_spec.fanout import MOST_CHUNKS, chunk_plan
from expertcache_spec.schedule import Costs, Record, Storage, divided

PREFIX = "builtin:"
_LARGEST = 1 << 20
"""Bytes that a hardware file may have."""
_WIDEST = 10**15
"""Nanoseconds, bytes or bytes a second that no machine goes beyond: eleven days, a petabyte."""
MOST_REQUESTS = 256
"""Requests of one stage of a record that a file may list; engines have six, and time grows with them."""


class InvalidHardware(ExpertCacheError):
    """A hardware file that cannot be read, or that says what no machine has."""

    code: ClassVar[str] = "invalid-hardware"


@attrs.frozen
class Hardware:
    """One machine with one model.

    name, about: for people. costs, storage: as the specification has them. gate_up, down: the requests of each stage
    in proportion, by default one for each of three equal projections. fan_out, page: the chunk plan of each request.
    """

    name: str
    about: str = ""
    costs: Costs = attrs.field(factory=Costs)
    storage: Storage = attrs.field(factory=Storage)
    gate_up: tuple[int, ...] = (1, 1)
    down: tuple[int, ...] = (1,)
    fan_out: int = 1
    page: int = 16384

    def record(self, size: int) -> Record:
        """The requests that read a record of `size` bytes; together they have exactly that many."""
        weights = [*self.gate_up, *self.down]
        edges = [size * upto // sum(weights) for upto in accumulate(weights, initial=0)]
        sizes = [
            [chunk.length for chunk in chunk_plan(high - low, self.fan_out, self.page)] for low, high in pairwise(edges)
        ]
        stages = len(self.gate_up)
        return divided([part for each in sizes[:stages] for part in each], [p for each in sizes[stages:] for p in each])

    def warnings(self, sizes: Iterable[int]) -> list[str]:
        """What to say of records of those sizes: that a `fan_out` above 1 cuts none of their requests."""
        uncut = len(self.gate_up) + len(self.down)
        if self.fan_out == 1 or any(len(self.record(size)) > uncut for size in sizes):
            return []
        return [
            f"fan_out {self.fan_out} cuts no request of this model's records, since none is two or more whole pages of "
            f"{self.page} bytes: the times are those of fan_out 1"
        ]


_SECTIONS: dict[str, tuple[str, ...]] = {
    "compute": tuple(field.name for field in attrs.fields(Costs)),
    "storage": tuple(field.name for field in attrs.fields(Storage)),
    "record": ("gate_up", "down", "fan_out", "page"),
}


def names() -> list[str]:
    """The hardware that ships, sorted."""
    return sorted(entry.name.removesuffix(".toml") for entry in _machines().iterdir() if entry.name.endswith(".toml"))


def load_hardware(source: str) -> Hardware:
    """The hardware of a TOML file, or of `builtin:NAME`.

    Raises `UnknownName` for a builtin that does not exist, `InvalidHardware` for everything else.
    """
    if source.startswith(PREFIX):
        name = source.removeprefix(PREFIX)
        if name not in names():
            known = ", ".join(PREFIX + each for each in names())
            raise UnknownName(f"hardware {source}", where="--hardware", cure=f"one of {known}, or a TOML file")
        return parse_hardware((_machines() / f"{name}.toml").read_text(encoding="utf-8"), source)
    try:
        with Path(source).open("rb") as file:
            text = file.read(_LARGEST + 1)
        if len(text) > _LARGEST:
            raise InvalidHardware("larger than any hardware file", where=source, cure="name a hardware file")
        return parse_hardware(text.decode("utf-8"), source)
    except OSError as error:
        raise InvalidHardware(f"cannot be read: {error.strerror}", where=source, cure="name a TOML file") from error
    except UnicodeDecodeError as error:
        raise InvalidHardware("is not UTF-8 text", where=source, cure="name a TOML file") from error


def parse_hardware(text: str, where: str) -> Hardware:
    """The hardware that the text describes; raises `InvalidHardware`, naming `where`."""
    try:
        found = tomllib.loads(text)
    except RecursionError:
        raise InvalidHardware("no TOML: nested too deep", where=where, cure="no value nests more than a list") from None
    except ValueError as error:  # of no TOML, and of a number with thousands of digits
        raise InvalidHardware(f"no TOML: {error}"[:200], where=where, cure="mend the line") from error
    _known(found, {"name": str, "about": str, **dict.fromkeys(_SECTIONS, dict)}, where)
    compute, storage, record = (found.get(section, {}) for section in _SECTIONS)
    for section, keys in _SECTIONS.items():
        kinds: dict[str, type] = {
            key: list if key in ("gate_up", "down") and section == "record" else int for key in keys
        }
        _known(found.get(section, {}), kinds, f"{where}: {section}")
    if not found.get("name") or not storage:
        raise InvalidHardware("no name, or no storage", where=where, cure="give a name and a [storage] section")
    shape: dict[str, Any] = {key: tuple(value) if type(value) is list else value for key, value in record.items()}
    try:
        made = Hardware(found["name"], found.get("about", ""), Costs(**compute), Storage(**storage), **shape)
        _check_shape(made)
    except ExpertCacheError as error:
        raise InvalidHardware(error.what, where=f"{where}: {error.where}", cure=error.cure) from error
    return made


def _known(table: dict[str, Any], kinds: dict[str, type], where: str) -> None:
    for key, value in table.items():
        if key not in kinds:
            raise InvalidHardware(f"unknown key {key!r}", where=where, cure=f"one of {', '.join(kinds)}")
        if type(value) is not kinds[key]:
            kind = {int: "a whole number", str: "text", list: "a list of whole numbers", dict: "a section"}[kinds[key]]
            raise InvalidHardware(f"{key} is {value!r}"[:200], where=where, cure=f"give {kind}")
        numbers = value if type(value) is list else [value]
        if any(type(number) is int and abs(number) > _WIDEST for number in numbers):
            raise InvalidHardware(f"{key} is beyond {_WIDEST}", where=where, cure="look at the units")


def _check_shape(hardware: Hardware) -> None:
    """What neither costs nor storage check: the requests of a record and how they are cut."""
    for stage in (hardware.gate_up, hardware.down):
        if not 1 <= len(stage) <= MOST_REQUESTS or any(type(each) is not int or each < 1 for each in stage):
            raise InvalidHardware(
                "a stage without requests, or one with too many",
                where="record",
                cure=f"list 1 to {MOST_REQUESTS} whole numbers from 1",
            )
    if not 1 <= hardware.fan_out <= MOST_CHUNKS:
        cure = f"give 1 to {MOST_CHUNKS} chunks"
        raise InvalidHardware(f"fan_out is {hardware.fan_out}", where="record", cure=cure)
    if hardware.page < 512 or hardware.page & (hardware.page - 1):
        cure = "give a power of two from 512, as 4096 or 16384"
        raise InvalidHardware(f"page is {hardware.page}", where="record", cure=cure)
    hardware.record(3 * hardware.page)


def _machines() -> Any:
    return files("expertcache_reference.timeline") / "machines"
