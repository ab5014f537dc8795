"""Loads: what the residency machine decided about each event, as far as a schedule depends on it.

They come from a replay, before anything is scheduled. A schedule moves work in time; it has no way to change a hit, a
miss, a victim or a byte (XC-SCHED-008).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from expertcache_spec.model import Key
from expertcache_spec.prefetch import predictor
from expertcache_spec.replay import Replay
from expertcache_spec.schedule.costs import InvalidSchedule, check_counts
from expertcache_spec.trace import Event


@attrs.frozen(slots=False)
class Load:
    """One event as its schedule sees it.

    keys: the event's records, one a slot, in router order. missing: those of them that must be read, kept or not.
    victims: the records that left to make room. stream: the request it belongs to. tokens: decode passes of that
    stream so far, this one included; 0 outside decode. entries: records that were resident when the event began.
    prefetches: records that the engine starts to read on speculation as soon as this event's experts are known.

    Raises `InvalidSchedule` where they contradict each other.
    """

    keys: tuple[Key, ...]
    missing: frozenset[Key] = frozenset()
    victims: tuple[Key, ...] = ()
    stream: int = 0
    tokens: int = 0
    entries: int = 0
    prefetches: tuple[Key, ...] = ()

    def __attrs_post_init__(self) -> None:
        check_counts(self, 0, "stream", "tokens", "entries")
        own = set(self.keys)
        reason = (
            "no records" if not own
            else "a record twice" if len(own) != len(self.keys) or len(set(self.prefetches)) != len(self.prefetches)
            else "a missing record that is not its own" if not self.missing <= own
            else "a victim or a prefetch that is its own" if own & {*self.victims, *self.prefetches}
            else ""
        )  # fmt: skip
        if reason:
            raise InvalidSchedule(f"an event with {reason}", where="load", cure="take loads from a replay's steps")

    @property
    def layer(self) -> int:
        """The layer whose experts these are."""
        return self.keys[0].layer

    @property
    def absent(self) -> tuple[int, ...]:
        """The slots whose records must be read."""
        return tuple(slot for slot, key in enumerate(self.keys) if key in self.missing)

    @property
    def present(self) -> tuple[int, ...]:
        """The slots whose records need no read of this event."""
        return tuple(slot for slot, key in enumerate(self.keys) if key not in self.missing)


def load_of(slots: int, absent: Sequence[int], *, layer: int = 0, stream: int = 0, first: int = 0) -> Load:
    """A load for examples and tests: experts `first` onward in that many slots, of which `absent` must be read.

    Raises `InvalidSchedule` for no slot, and for an absent one that there is not.
    """
    wrong = [slot for slot in absent if type(slot) is not int or not 0 <= slot < slots]
    if slots < 1 or wrong:
        said = f"slot {wrong[0]!r} of {slots}" if wrong else f"{slots} slots"
        raise InvalidSchedule(said, where="load", cure="number the slots from 0, at least one of them")
    keys = tuple(Key(layer, first + slot) for slot in range(slots))
    return Load(keys, frozenset(keys[slot] for slot in absent), stream=stream, tokens=1)


def loads(run: Replay) -> Iterator[tuple[Event, Load]]:
    """Each event of a replay with its load, as the replay takes its steps.

    Raises `InvalidSchedule` for a replay that prefetches: which reads went ahead, and which of them were given up, is
    decided by its own count of time, and a load has no place for it.
    """
    guesses = "none" if run.prefetch is None else predictor(run.prefetch.predictor).name
    if guesses != "none":
        raise InvalidSchedule(
            f"a replay with predictor {guesses}",
            where="loads",
            cure="replay without prefetch, and state guesses as `Load.prefetches`",
        )
    return _taken(run)


def _taken(run: Replay) -> Iterator[tuple[Event, Load]]:
    decoded: dict[int, int] = {}
    steps = iter(run)
    for event in run.events:
        if event.phase == "decode" and event.layer == run.trace.geometry.routed[0]:
            decoded[event.stream] = decoded.get(event.stream, 0) + 1
        entries, step = run.machine.usage.slots, next(steps)
        yield (
            event,
            Load(
                event.keys,
                frozenset(step.misses + step.bypassed),
                step.victims,
                event.stream,
                decoded.get(event.stream, 0) if event.phase == "decode" else 0,
                entries,
            ),
        )


def adoptions(all_loads: Sequence[Load]) -> dict[tuple[int, int], int | None]:
    """What becomes of each speculative read, by issuing event and place: the event that misses its record, or None.

    None too where an event hits the record or it leaves. A prefetch of a record that is there or on its way, for demand
    or on speculation, is left out, as a replay never issues it (XC-SCHED-015). A record is there once an event has
    asked for it, until it leaves, unless the next event to ask misses it: then it was not kept. It may be on its way
    while the event that misses it is the latest of its stream.
    """
    guessed: dict[Key, tuple[int, int]] = {}
    asked, reading = set[Key](), dict[int, frozenset[Key]]()
    found: dict[tuple[int, int], int | None] = {}
    for index, load in enumerate(all_loads):
        reading[load.stream] = load.missing
        for key in (*load.victims, *load.keys):
            guess = guessed.pop(key, None)
            if guess is not None and key in load.missing:
                found[guess] = index
        asked = (asked - {*load.victims}) | {*load.keys}
        for place, key in enumerate(load.prefetches):
            on_its_way = key in guessed or any(key in keys for keys in reading.values())
            if not on_its_way and not (key in asked and _stays(all_loads, index, key)):
                asked.discard(key)
                guessed[key] = (index, place)
                found[index, place] = None
    return found


def _stays(all_loads: Sequence[Load], now: int, key: Key) -> bool:
    """Whether a record that was read is there still: what comes of it after `now` is no miss."""
    later = (all_loads[index] for index in range(now + 1, len(all_loads)))
    return key not in next((load.missing for load in later if key in load.keys or key in load.victims), ())
