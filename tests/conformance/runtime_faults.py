"""What is wrong with the runtimes that the suite catches as implementations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import attrs

from expertcache_reference.runtime.contents import Contents
from expertcache_reference.runtime.core import Core
from expertcache_reference.runtime.work import Work
from expertcache_spec.residency import Ended

from ..reference.runtime_faults.miniatures import MINIATURES


@attrs.frozen
class Caught:
    """A fault, the test of the suite that meets it, and exactly the rules that the test names.

    daily: whether it does so every day.
    """

    case: str
    rules: frozenset[str]
    patches: tuple[Any, ...]
    daily: bool = False


def _wrapped(owner: Any, name: str, make: Callable[[Any], Any]) -> Any:
    return patch.object(owner, name, make(getattr(owner, name)))


def _old_files(rebind: Any) -> Any:
    def kept(contents: Contents, *model: Any) -> None:
        """The other model's records are looked for in the files of the one before."""
        folder = contents._core.files.folder
        rebind(contents, *model)
        contents._core.files.folder = folder

    return kept


def _lease_ends_at_launch(batches: Any) -> Any:
    def early(work: Work) -> Iterator[Any]:
        """When the last batch is handed out the lease ends, and the work on it has only begun."""
        for batch in batches(work):
            wave, core = work.wave, work._core
            with core.lock:
                if wave.ticket in core.works and not wave.pending and wave._whole.issuperset(wave.keys):
                    for key, slot in list(wave._places.items()):
                        slot.uses -= 1
                        wave._places[key] = attrs.evolve(slot)  # the same memory, protected by nothing
                    core.release(wave.ticket)
            yield batch

    return early


def _released_once(release: Any) -> Any:
    return lambda core, ticket, **how: release(core, ticket, **how) if ticket in core.works else Ended()


def _of(name: str, case: str, *rules: str, daily: bool = False) -> Caught:
    return Caught(case, frozenset(rules), tuple(MINIATURES[name].patches), daily)


LEGAL = "test_every_schedule_is_legal"
FAULTS = {
    "a slot is refilled while a step reads it": _of(
        "a slot is refilled while a step reads it", "until_its_lease_ends", "XC-BYTES-001", "XC-RES-022", daily=True
    ),
    "a record is published before its last chunk": _of(
        "a record is published before its last chunk", "until_its_lease_ends", "XC-BYTES-001", daily=True
    ),
    "the same, in time": _of(
        "a record is published before its last chunk", f"{LEGAL}[pipelined]", "XC-SCHED-001", "XC-SCHED-005"
    ),
    "bytes of a failed read are published": _of(
        "bytes of a failed read are published", "nothing_of_a_failed_read", "XC-RES-016"
    ),
    "a smaller budget is ignored": _of("a smaller budget is ignored", "happens[resize]", "XC-RES-011"),
    "a reset keeps the contents": _of("a reset keeps the contents", "happens[reset]", "XC-RES-022"),
    "the files of the former model stay open": Caught(
        "after_a_rebind", frozenset({"XC-BYTES-003"}), (_wrapped(Contents, "rebind", _old_files),), daily=True
    ),
    "a lease ends when its work is launched": Caught(
        f"{LEGAL}[sync]", frozenset({"XC-SCHED-006"}),
        (_wrapped(Work, "batches", _lease_ends_at_launch), _wrapped(Core, "release", _released_once)), daily=True,
    ),
    "work begins before its bytes are there": _of(
        "work begins before its bytes are there", f"{LEGAL}[split]", "XC-SCHED-005", "XC-SCHED-011"
    ),
    "the same, in two stages": _of(
        "work begins before its bytes are there", f"{LEGAL}[staged]", "XC-SCHED-005", "XC-SCHED-010", "XC-SCHED-012"
    ),
    "speculation goes before demand": _of(
        "speculation goes before demand", "no_speculation_starts", "XC-SCHED-014", daily=True
    ),
    "speculation and demand read one key twice": _of(
        "speculation and demand read one key twice", "no_speculation_starts", "XC-SCHED-014"
    ),
    "results are summed as they arrive": _of(
        "results are summed as they arrive", "added_in_slot_order", "XC-SCHED-009"
    ),
}  # fmt: skip
"""What is wrong, to how it is found."""
