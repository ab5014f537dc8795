"""Diagnosis: which rule a difference breaks, from the most basic to the most particular.

Up to the operation that differs, both sides agreed, so the specification's state just before it is the
implementation's too. Structure comes first (lookups, residency, protection, room); only a victim that was legal to
evict is a question for the policy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from expertcache_conformance import clauses
from expertcache_conformance.adapters.claims import card_of
from expertcache_conformance.answers import Answer, Oracle
from expertcache_conformance.features import REFUSALS
from expertcache_conformance.program import Operation, Program, count, show
from expertcache_spec.admission import admission
from expertcache_spec.model import Key
from expertcache_spec.residency import Residency

OF_OPERATION = {
    "complete": "XC-RES-015",
    "fail": "XC-RES-016",
    "release": "XC-RES-017",
    "resume": "XC-RES-013",
    "pin": "XC-RES-018",
    "unpin": "XC-RES-019",
    "seed": "XC-RES-020",
    "install": "XC-RES-020",
    "prefetch": "XC-RES-021",
    "prefetch_counts": "XC-METRIC-004",
    "displace": "XC-PREFETCH-008",
    "read": "XC-BYTES-001",
    "resize": "XC-RES-011",
    "reset": "XC-RES-022",
    "rebind": "XC-RES-023",
}
"""Operation to the rule that states it."""


INDIRECT = {"XC-RES-003", "XC-RES-005", "XC-RES-008", "XC-RES-010", "XC-RES-012", "XC-RES-024", "XC-RES-028"}
"""Rules that break as a consequence of others."""


class Verdict(NamedTuple):
    """A rule, why, and whether the victim was legal so that only the policy is in question."""

    rule: str
    note: str
    of_policy: bool = False

    @property
    def indirect(self) -> bool:
        """Whether something else may have brought the difference about: an operation before, the kind of budget."""
        return self.of_policy or self.rule in INDIRECT or self.rule.startswith("XC-ADMIT")


def diagnose(program: Program, expected: Answer, got: Answer) -> Verdict:
    """The rule that the last operation's answer breaks, and a note on why; the program ends at the difference."""
    operation = program.operations[-1]
    if expected.error or got.error:
        return _refusal(operation, expected, got)
    before = Oracle(program.config)
    for earlier in program.operations[:-1]:
        before.apply(earlier)
    case = Case(program, operation, before.machine, expected, got)
    if operation.op == "release" and program.config.settings.room == "retain":
        if len(expected.victims | expected.refused) == len(got.victims | got.refused):
            return _of_policy(case)
        return Verdict("XC-RES-026", "room retain keeps the best of residents and event")
    if expected.outcome in ("resident", "in-flight") and got.outcome == "started":
        return Verdict("XC-PREFETCH-014", f"{show(operation.key or Key(0, 0))} is {expected.outcome} already")
    if operation.op in ("seed", "prefetch", "prefetch_counts", "pin", "unpin", "reset", "rebind"):
        return Verdict(OF_OPERATION[operation.op], f"{operation.op} answered otherwise")
    checks: Iterable[Callable[[Case], Verdict | None]] = (
        (_lookups, _hits, _protected, _room, _kept) if operation.event is not None else (_protected, _room)
    )
    for check in checks:
        verdict = check(case)
        if verdict is not None:
            return verdict
    return _of_policy(case)


def of_hits(program: Program, expected: Answer, got: Answer) -> Verdict:
    """The rule of a cache that reports hits only, once something had to be evicted: the policy's own."""
    wrong = sorted(expected.hits ^ got.hits)
    note = f"whether {' '.join(map(show, wrong))} is resident differs; victims are not reported"
    return Verdict(card_of(program.config.policy).rule, note, of_policy=True)


class Case:
    """One difference: the program, its last operation, the machine before it, and both answers."""

    def __init__(
        self, program: Program, operation: Operation, before: Residency, expected: Answer, got: Answer
    ) -> None:
        self.program, self.operation, self.before = program, operation, before
        self.expected, self.got = expected, got
        self.settings = program.config.settings
        self.event = operation.event
        self.own = frozenset(self.event.keys) if self.event is not None else frozenset()


def _refusal(operation: Operation, expected: Answer, got: Answer) -> Verdict:
    code = expected.error or got.error or ""
    note = f"expected {expected.error or 'to be served'}, got {got.said or got.error or 'served'}"
    if operation.op == "rebind" and code == "still-in-use":
        return Verdict("XC-RES-023", note)
    if code in REFUSALS:
        return Verdict(REFUSALS[code], note)
    return Verdict(OF_OPERATION.get(operation.op, "XC-CONF-003"), note)


def _lookups(case: Case) -> Verdict | None:
    got = case.got
    if got.doubled:
        return Verdict("XC-RES-002", f"{' '.join(map(show, sorted(got.doubled)))} is looked up more than once")
    missing = case.own - (got.hits | got.misses | got.bypassed)
    if missing and case.operation.op != "resume":
        return Verdict("XC-RES-002", f"{' '.join(map(show, sorted(missing)))} is neither hit, miss nor bypassed")
    return None


def _hits(case: Case) -> Verdict | None:
    for key in sorted(case.got.hits - case.expected.hits):
        return Verdict(_why_absent(case, key), f"{show(key)} is a hit, but was not resident at the start of the event")
    for key in sorted((case.expected.hits - case.got.hits) & case.own):
        if key in case.got.victims:
            return Verdict("XC-RES-005", f"{show(key)} is evicted by its own event")
        return Verdict(_why_present(case, key), f"{show(key)} was resident at the start of the event, but is not a hit")
    return None


def _last(case: Case, key: Key, wanted: Callable[[Operation], bool]) -> Operation | None:
    return next((o for o in reversed(case.program.operations[:-1]) if wanted(o)), None)


def _why_absent(case: Case, key: Key) -> str:
    """The rule by which the key is absent: what happened to it last."""
    if key in case.before.flights:
        return "XC-RES-015"
    if not any(key in (o.keys or ()) or o.key == key or (o.event is not None and key in o.event.keys)
               for o in case.program.operations[:-1]) and case.before.residents():  # fmt: skip
        return "XC-MODEL-001"

    def removes(operation: Operation) -> bool:
        failed = operation.op == "fail" and operation.key == key
        return failed or operation.op == "rebind" or operation.text == "contents"

    last = _last(case, key, lambda o: removes(o) or o.op == "resize" or (o.event is not None and key in o.event.keys))
    if last is not None and (removes(last) or last.op == "resize"):
        return OF_OPERATION[last.op]
    aliased = any(other.expert == key.expert for other in case.before.residents())
    return "XC-MODEL-001" if aliased else "XC-RES-003"


def _why_present(case: Case, key: Key) -> str:
    """The rule by which the key is resident: what brought it in, or what must not have taken it out."""
    last = _last(case, key, lambda o: o.op in ("reset", "rebind", "unpin", "resize") or key in (o.keys or ())
                 or o.key == key or (o.event is not None and key in o.event.keys))  # fmt: skip
    if last is None or last.event is not None:
        return "XC-RES-003"
    return "XC-RES-021" if last.op == "complete" and _prefetched(case, key) else OF_OPERATION[last.op]


def _prefetched(case: Case, key: Key) -> bool:
    return any(o.op in ("prefetch", "displace") and o.key == key for o in case.program.operations)


def _protected(case: Case) -> Verdict | None:
    before, settings = case.before, case.settings
    pinned, leased = before.pinned(), before.leased()
    for victim in sorted(case.got.victims):
        if victim in case.own and not (settings.room == "retain" and victim in case.expected.hits):
            return Verdict("XC-RES-005", f"{show(victim)} is evicted by its own event")
        if victim in pinned:
            return Verdict("XC-RES-018", f"{show(victim)} is pinned")
        if victim in before.flights:
            return Verdict("XC-RES-005", f"{show(victim)} is in flight")
        if victim in leased and not _ends_lease(case, victim):
            return Verdict("XC-RES-004", f"{show(victim)} is leased by an event that has not been released")
        if victim not in before.residents() | case.own:
            return Verdict("XC-RES-005", f"{show(victim)} is not resident")
    return None


def _ends_lease(case: Case, victim: Key) -> bool:
    others = [lease for lease in case.before.leases.values() if victim in lease.held]
    return case.operation.op == "release" and len(others) == 1


def _room(case: Case) -> Verdict | None:
    """Budget and needless eviction, from the implementation's own report."""
    expected, got = case.expected, case.got
    machine = case.before
    if case.operation.op == "resize":
        return Verdict("XC-RES-011", "a resize evicts down to the new budget in victim order, at once, and no further")
    if case.operation.op == "displace" and len(got.victims) != len(expected.victims):
        return Verdict("XC-PREFETCH-008", "a prefetch displaces all that its record needs, and nothing else")
    if case.operation.op in ("complete", "release", "fail") and len(got.victims) != len(expected.victims):
        room = {"trim": "XC-RES-025", "retain": "XC-RES-026"}.get(case.settings.room, "XC-RES-011")
        return Verdict(room, "room is made for what exceeds the budget, and for nothing else")
    if case.event is None or case.settings.room == "retain":
        return None
    part = machine.part_of(case.event.layer)
    size = machine.size(case.event.layer)
    loaded = {key for key in got.misses - got.refused - got.joined if not part.has(key)}
    freed = sum(part.size_of(victim) if part.has(victim) else size for victim in got.victims)
    slots = part.used_slots + len(loaded) - len(got.victims)
    taken = part.used_bytes + len(loaded) * size - freed
    rule = "XC-RES-025" if case.settings.room == "trim" else "XC-RES-010"
    after_step = case.operation.op == "step" or case.settings.room == "reserve"
    if after_step and part.slots is not None and slots > part.slots:
        return Verdict(rule, f"{count(slots, 'record')} held where {part.slots} fit")
    if after_step and part.bytes is not None and taken > part.bytes:
        return Verdict(rule, f"{count(taken, 'byte')} held where {part.bytes} fit")
    if got.victims > expected.victims and got.misses == expected.misses and got.refused == expected.refused:
        if expected.refused:
            return Verdict("XC-ADMIT-001", "a record is declined, and a resident leaves for it all the same")
        return Verdict("XC-RES-008", f"{count(len(got.victims), 'victim')} where room needs {len(expected.victims)}")
    return None


def _kept(case: Case) -> Verdict | None:
    """What is bypassed, refused or joined otherwise."""
    expected, got, config = case.expected, case.got, case.program.config
    if expected.refused & got.bypassed:
        return Verdict("XC-ADMIT-002", "what admission declines is a miss that is refused, and not bypassed")
    if expected.bypassed != got.bypassed:
        if config.budget.is_zero:
            return Verdict("XC-RES-014", "nothing can be kept at capacity 0")
        layer = min(case.own).layer
        if case.before.part_of(layer).room_beside_pins(case.before.size(layer), case.own) < len(case.own):
            return Verdict("XC-RES-012", "the event alone exceeds the budget")
        rule = "XC-RES-024" if expected.bypassed else "XC-RES-028"
        return Verdict(rule, "what is served without being kept differs")
    if expected.joined != got.joined or expected.reads != got.reads:
        joins = (expected.joined ^ got.joined) | (got.reads & expected.joined)
        flights = case.before.flights
        if any(key in flights and flights[key].origin == "prefetch" and not flights[key].tickets for key in joins):
            return Verdict("XC-PREFETCH-014", "demand that meets a speculative read joins it, and reads nothing itself")
        return Verdict("XC-RES-027" if joins else "XC-RES-015", "what is read, and what waits for a read, differs")
    if expected.refused != got.refused:
        if case.settings.room == "retain":
            return _of_policy(case)
        return _of_admission(case, "what is not kept differs")
    return None


def _of_admission(case: Case, note: str) -> Verdict:
    """What the declared admission says of a miss."""
    card, _ = admission(case.settings.admission)
    optimum = card.needs and card_of(case.program.config.policy).offline
    return Verdict("XC-EVICT-051" if optimum else card.rule, f"admission {case.settings.admission}: {note}")


def _of_policy(case: Case) -> Verdict:
    """A legal victim, but not the policy's."""
    config = case.program.config
    wanted, found = case.expected.victims - case.got.victims, case.got.victims - case.expected.victims
    note = f"the victim is {' '.join(map(show, sorted(wanted)))}, not {' '.join(map(show, sorted(found)))}"
    if not wanted:
        wanted, found = case.expected.refused - case.got.refused, case.got.refused - case.expected.refused
    clause = clauses.broken(case.program, sorted(wanted), sorted(found))
    return Verdict(clause or card_of(config.policy).rule, note, of_policy=True)
