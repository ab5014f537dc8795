"""Ahead: prefetch around a runtime. A predictor of the specification guesses, the runtime reads behind all demand.

An event is served first, so that its own reads are in the queue before those of any guess; then the predictor learns it
and names keys of later layers, whose reads go on while the event waits and computes. The records go into slots of the
cache (XC-PREFETCH-008). What the replay models, how long a read takes and how many are in service, is real here.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from expertcache_reference.runtime.runtime import Runtime
from expertcache_reference.runtime.work import Work
from expertcache_spec.admission import Ages
from expertcache_spec.errors import NeedsFuture, UnknownName
from expertcache_spec.model import Key
from expertcache_spec.prefetch import Predictor, Prefetch, PrefetchCounts, predictor
from expertcache_spec.prefetch.predictors import Target, ahead, target_of
from expertcache_spec.prefetch.registry import build
from expertcache_spec.residency import Selection
from expertcache_spec.trace import Event

MODELLED = ("latency", "width")
"""Settings of the replay's time."""


def check(prefetch: Prefetch, *, future: Sequence[Event] = ()) -> None:
    """Raise unless a runtime can do it: `UnknownName`, `NeedsFuture`."""
    defaults = Prefetch(prefetch.predictor, prefetch.parameters, home="slot")
    if prefetch.home != "slot":
        raise UnknownName(
            f"home {prefetch.home}", where="prefetch", cure="a runtime prefetches into its own slots: home=slot"
        )
    if not prefetch.stamps:
        raise UnknownName(
            "stamps False", where="prefetch", cure="leave it out: in a runtime what is inserted is touched"
        )
    for name in MODELLED:
        if getattr(prefetch, name) != getattr(defaults, name):
            raise UnknownName(
                f"{name} {getattr(prefetch, name)}",
                where="prefetch",
                cure="leave it out: here reads take their own time",
            )
    if predictor(prefetch.predictor).offline and not future:
        raise NeedsFuture(f"{prefetch.predictor} guesses from what is to come", where="prefetch", cure="another one")


@attrs.define(slots=False)
class Ahead:
    """One prefetch at work on one runtime; `serve` is the runtime's, and predicts. Calls come from one thread.

    future: every event to come, for an offline predictor. Raises as `check`, and seeds the profile.
    """

    runtime: Runtime
    prefetch: Prefetch
    future: Sequence[Event] = attrs.field(default=(), repr=False)
    predictor: Predictor = attrs.field(init=False, repr=False)
    tickets: dict[Key, set[Target]] = attrs.field(factory=dict, init=False, repr=False)
    """Key to the targets still to come, of each speculative read whose end has not been booked."""
    expected: dict[Target, set[Key]] = attrs.field(factory=dict, init=False, repr=False)
    ages: Ages = attrs.field(factory=Ages, init=False, repr=False)
    _counts: PrefetchCounts = attrs.field(factory=PrefetchCounts, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        asked, runtime = self.prefetch, self.runtime
        check(asked, future=self.future)
        self.predictor = build(asked.predictor, asked.parameters, runtime.speculation.geometry, self.future)
        runtime.seed(asked.profile)
        runtime.settle()

    @property
    def counts(self) -> PrefetchCounts:
        """What it came to so far. A speculative read that failed is wasted here.

        `Report.failed` counts it too, and those that were given up.
        """
        there = self.runtime.speculation.present()
        for key in [key for key in self.tickets if key not in there]:
            self._end(key, "wasted")
        return attrs.evolve(self._counts)

    def serve(self, event: Event, *, wait: bool = True, ahead: bool = False) -> Work:
        """As `Runtime.serve`, which comes first; then what the event says of later ones begins to be read.

        Raises what the runtime and the predictor raise; the event is released then.
        """
        work = self.runtime.serve(event, wait=wait, ahead=ahead)
        try:
            self.ages.asked(event)
            self._judge(event, work.wave.selection)
            self.predictor.learn(event)
            self._predict(event, work.wave.ticket)
        except BaseException:
            work.release()
            raise
        return work

    # ------------------------------------------------------------------------------------------ what became of guesses

    def _end(self, key: Key, how: str) -> None:
        """Book how a read ended: useful, late, wasted."""
        counts, size = self._counts, self.runtime.speculation.size(key)
        del self.tickets[key]
        counts.outstanding -= 1
        setattr(counts, how, getattr(counts, how) + 1)
        counts.bytes_wasted += size if how == "wasted" else 0

    def _judge(self, event: Event, selection: Selection) -> None:
        """The tickets that the event meets, both recalls (XC-PREFETCH-013), and the tickets that are for no other."""
        hits, joined, useful = {*selection.hits}, {*selection.joined}, set[Key]()
        for key in [key for key in event.keys if key in self.tickets]:
            self._end(key, "useful" if key in hits else "late" if key in joined else "wasted")
            useful.add(key)
        target = target_of(event)
        expected = self.expected.pop(target, None)
        if expected is None:
            return
        missing = [key for key in event.keys if key not in hits or key in useful]
        self._counts.recall(expected, event.keys, missing)
        for key in sorted(expected.intersection(self.tickets)):
            self.tickets[key].discard(target)
            if not self.tickets[key] and self.runtime.speculation.give_up(key):
                self._give_up(key)

    def _give_up(self, key: Key) -> None:
        """Its read had not begun when its last target passed (XC-PREFETCH-015): as if it had not been issued."""
        counts = self._counts
        del self.tickets[key]
        counts.cancelled += 1
        counts.issued -= 1
        counts.outstanding -= 1
        counts.bytes -= self.runtime.speculation.size(key)

    # ------------------------------------------------------------------------------------------ guesses

    def _predict(self, event: Event, ticket: int) -> None:
        room = self.prefetch.queue - self.runtime.speculation.under_way()
        for distance in range(1, self.prefetch.lookahead + 1):
            target = ahead(self.runtime.speculation.geometry, event, distance)
            if target.pass_index != event.pass_index and not self.prefetch.wrap:
                return
            for expert in self.predictor.predict(event, target, distance) or ():
                room -= self._submit(Key(target.layer, expert), target, ticket, may_read=room > 0)

    def _submit(self, key: Key, target: Target, ticket: int, *, may_read: bool) -> bool:
        """Have one guess read; whether its read was queued."""
        counts = self._counts
        counts.predictions += 1
        self.expected.setdefault(target, set()).add(key)
        outcome = self._asked(key, ticket) if may_read else "refused"
        if outcome == "started":
            if key in self.tickets:
                self._end(key, "wasted")  # what an earlier guess had brought has left since
            self.tickets[key] = {target}
            self.ages.inserted([key])
            counts.issued += 1
            counts.outstanding += 1
            counts.bytes += self.runtime.speculation.size(key)
        elif outcome == "refused":
            counts.refused += 1
        else:
            counts.duplicate += 1
            if key in self.tickets:
                self.tickets[key].add(target)
        return outcome == "started"

    def _asked(self, key: Key, ticket: int) -> str:
        if self.prefetch.displace == "nothing":
            return self.runtime.speculation.prefetch(key)
        outcome, gone = self.runtime.speculation.displace(key, ticket, self._may_go)
        self._counts.evicted += len(gone)
        return outcome

    def _may_go(self, key: Key) -> bool:
        return self.prefetch.displace == "any" or self.ages.is_stale(key, self.prefetch.idle)
