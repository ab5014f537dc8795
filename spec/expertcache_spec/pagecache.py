"""The page cache: the tier below the expert cache, and how memory is best divided between the two.

A read of the application may be served from memory that the system keeps. Application bytes are what was asked for,
physical bytes what came from the device; the expert cache decides the former, both tiers the latter. The model is one
LRU over pages.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from math import isfinite
from typing import Literal, NamedTuple

import attrs

from expertcache_spec.contracts import invariant
from expertcache_spec.errors import InvalidBudget
from expertcache_spec.layout.extents import Extent
from expertcache_spec.model import Key
from expertcache_spec.residency import Step
from expertcache_spec.trace import Event

Temperature = Literal["cold", "warm", "mixed", "unknown"]


@invariant(lambda self: len(self.held) <= self.pages, "XC-PAGE-001")
@attrs.define(slots=False)
class PageCache:
    """An LRU over the pages of files.

    pages: how many pages fit. page: their bytes. held: the pages in memory, the least recent first. application,
    physical: bytes asked for and bytes read from the device, so far. Raises `InvalidBudget` for no page size or a
    negative capacity.
    """

    pages: int
    page: int = 16384
    held: OrderedDict[tuple[str, int], None] = attrs.field(factory=OrderedDict, repr=False)
    application: int = 0
    physical: int = 0

    def __attrs_post_init__(self) -> None:
        if type(self.pages) is not int or self.pages < 0 or type(self.page) is not int or self.page < 1:
            raise InvalidBudget(
                f"{self.pages!r} pages of {self.page!r} bytes", where="page cache", cure="give whole numbers"
            )

    def read(self, extent: Extent, *, keep: bool = True) -> int:
        """One read of the application; the bytes that it takes from the device (XC-PAGE-002).

        With `keep` false the read goes past the cache, as F_NOCACHE does: pages that are held serve it and stay as
        they are, those that are not are read and not kept (XC-PAGE-004).
        """
        self.application += extent.length
        return self._fetch(extent, keep)

    def advise(self, extent: Extent) -> int:
        """Bring the pages in, as advice may: no read of the application, no byte of it counted (XC-PAGE-005)."""
        return self._fetch(extent, keep=True)

    def _fetch(self, extent: Extent, keep: bool) -> int:
        held, missing = self.held, 0
        if extent.length:
            for number in range(extent.offset // self.page, (extent.end - 1) // self.page + 1):
                place = (extent.file, number)
                if place not in held:
                    missing += 1
                    if keep and self.pages:
                        if len(held) == self.pages:
                            held.popitem(last=False)
                        held[place] = None
                elif keep:
                    held.move_to_end(place)
        self.physical += missing * self.page
        return missing * self.page


def temperature(application: int, physical: int | None, resident: int | None = None) -> Temperature:
    """What may be said of a run: `cold` only when the device is known to have delivered every byte (XC-PAGE-003).

    Bytes: `application` asked for, `physical` read from the device, `resident` of those asked for that were in memory
    before; None where nobody measured or looked. What a run asks for again may be in memory since the first time: look
    before each read there. Of a run that asked for nothing, nothing can be said.
    """
    if physical is None or not application:
        return "unknown"
    if not physical:
        return "warm"
    if physical < application or resident:
        return "mixed"
    return "unknown" if resident is None else "cold"


# ---------------------------------------------------------------------------------------------- two tiers


class Traffic(NamedTuple):
    """Bytes of a run: of records and of mapped weights, asked for by the application and read from the device."""

    application: int
    physical: int
    mapped: int
    mapped_physical: int


def traffic(
    served: Iterable[tuple[Event, Step]],
    extents: Callable[[Key], Sequence[Extent]],
    cache: PageCache,
    mapped: Callable[[int], Sequence[Extent]] = lambda layer: (),
    *,
    keep: bool = True,
) -> Traffic:
    """Send what the expert cache missed through the page cache.

    `served` are events with what the expert cache did, `extents` where a record lies, `mapped` what else a layer reads
    through the page cache on each visit: attention and shared weights of a mapped file. `keep` as in `read`, for
    records. The expert cache knows nothing of the tier below: its steps are the same with any (XC-PAGE-006).
    """
    records = records_physical = weights = weights_physical = 0
    for event, step in served:
        for extent in mapped(event.layer):
            weights += extent.length
            weights_physical += cache.read(extent)
        for key in (*step.misses, *step.bypassed):
            for extent in extents(key):
                records += extent.length
                records_physical += cache.read(extent, keep=keep)
    return Traffic(records, records_physical, weights, weights_physical)


@attrs.frozen(slots=False)
class TierCost:
    """Time of bytes, in seconds: copied out of memory at `copy` bytes a second, read from the device at `device`.

    A record that is read is copied, whether it was warm or not; mapped weights are used where they lie. Raises
    `InvalidBudget` for a rate that is not finite and above 0.
    """

    copy: float
    device: float

    def __attrs_post_init__(self) -> None:
        if not all(isfinite(rate) and rate > 0 for rate in (self.copy, self.device)):
            said = f"{self.copy!r} and {self.device!r} bytes a second"
            raise InvalidBudget(said, where="tier cost", cure="give finite rates above 0")

    def seconds(self, found: Traffic) -> float:
        """The time that the traffic takes, one byte after the other."""
        return found.application / self.copy + (found.physical + found.mapped_physical) / self.device


class Share(NamedTuple):
    """One way to divide the memory: bytes for experts, bytes for pages, and what the run then cost."""

    experts: int
    pages: int
    traffic: Traffic
    seconds: float


def sizing_curve(
    total: int, shares: Iterable[int], page: int, cost: TierCost, run: Callable[[int, PageCache], Traffic]
) -> list[Share]:
    """The cost of giving each of `shares` bytes to experts and the rest of `total` to pages.

    `run` replays one division. Raises `InvalidBudget` for a share beyond the total, and for no page size.
    """
    if type(page) is not int or page < 1:
        raise InvalidBudget(f"pages of {page!r} bytes", where="sizing curve", cure="give a whole number from 1")
    found = []
    for share in shares:
        if not 0 <= share <= total:
            raise InvalidBudget(f"{share} of {total} bytes", where="share", cure="give shares from 0 to the total")
        result = run(share, PageCache((total - share) // page, page))
        found.append(Share(share, total - share, result, cost.seconds(result)))
    return found


def best(curve: Sequence[Share]) -> Share:
    """The share that takes least time, the smaller of equals. Raises `InvalidBudget` where there is none."""
    if not curve:
        raise InvalidBudget("no share", where="sizing curve", cure="give one share or more")
    return min(curve, key=lambda share: (share.seconds, share.experts))


def has_interior_optimum(curve: Sequence[Share]) -> bool:
    """Whether some share beats both ends of the curve, strictly. Raises what `best` raises."""
    ordered = sorted(curve)
    return best(curve).seconds < min(ordered[0].seconds, ordered[-1].seconds)
