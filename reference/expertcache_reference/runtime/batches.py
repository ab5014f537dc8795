"""Batches: the discipline's cuts of one wave, as groups of keys that may be computed now."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from expertcache_spec.errors import UnknownName
from expertcache_spec.model import Key
from expertcache_spec.schedule.disciplines import NAMES, Discipline, Needs, parse_discipline
from expertcache_spec.schedule.work import Load


class Batch(NamedTuple):
    """Work that may be launched now.

    keys: records that are whole from here on, each in one batch of its event: enough for an engine that computes an
    expert at once. gate_up, down: for one that computes in two stages, whose stage is due; its bytes are there.
    """

    keys: tuple[Key, ...]
    gate_up: tuple[Key, ...]
    down: tuple[Key, ...]


class Step(NamedTuple):
    """A batch before its bytes are there, and what it waits for."""

    batch: Batch
    needs: Needs


def discipline_of(text: str | Discipline) -> Discipline:
    """The discipline of that name; raises `UnknownName`, also for `free`, which is a bound and runs on no machine."""
    if not isinstance(text, str | Discipline):
        raise UnknownName(f"discipline {text!r}", where="runtime", cure="sync, split, staged or pipelined")
    if isinstance(text, str) and text.partition(":")[0] not in NAMES:  # whose cure would name free
        raise UnknownName(f"discipline {text[:40]!r}", where="runtime", cure="sync, split, staged or pipelined")
    found = text if isinstance(text, Discipline) else parse_discipline(text)
    if found.name == "free":
        raise UnknownName(
            "discipline 'free'", where="runtime", cure="sync, split, staged or pipelined; free is a bound"
        )
    return found


def steps(
    discipline: Discipline, keys: Sequence[Key], missing: Collection[Key], stream: int, tokens: int, entries: int
) -> list[Step]:
    """The batches of one wave, in the discipline's order; those of pipelined may be taken in any."""
    every = tuple(keys)
    if not missing:
        return [Step(Batch(every, every, every), "all")]
    load = Load(every, frozenset(missing), stream=stream, tokens=tokens, entries=entries)
    found, told = list[Step](), set[Key]()
    for gate_up, down, needs in discipline.batches(load):
        firsts, seconds = tuple(every[slot] for slot in gate_up), tuple(every[slot] for slot in down)
        whole = (key for key in dict.fromkeys((*firsts, *seconds)) if key not in missing or key in seconds)
        fresh = tuple(key for key in whole if key not in told)
        told.update(fresh)
        found.append(Step(Batch(fresh, firsts, seconds), needs))
    return found


def without(batch: Batch, failed: Collection[Key]) -> Batch:
    """The batch less the records whose reads have failed."""
    return Batch(*(tuple(key for key in keys if key not in failed) for keys in batch)) if failed else batch
