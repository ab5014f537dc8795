"""Looking at bytes: programs that look at every record that some event may compute with, and whose the wrong ones are.

After every step of such a program each outstanding event is asked for each record that it holds and that is not being
read. So a byte that changes while somebody may still use it is seen, whatever changed it.
"""

from __future__ import annotations

from collections.abc import Iterator

from expertcache_conformance.adapters import Config, Implementation
from expertcache_conformance.answers import Answer, Crashed, Malformed, Oracle, subject_of
from expertcache_conformance.program import Operation, Program, count, show
from expertcache_conformance.scenarios import Choose, draw
from expertcache_spec.model import Key
from expertcache_spec.trace import Event

WHOLE, FAILED, REBOUND = "XC-BYTES-001", "XC-BYTES-002", "XC-BYTES-003"
EVENTS = ("select", "select", "complete", "complete", "complete", "release")
CALM = ("reset", "rebind")
"""What is refused while somebody holds or reads anything: before it, more often than not, all of that ends."""


def held(config: Config, choose: Choose) -> Program:
    """Several events outstanding at once, reads ending in any order, releases late."""
    return _watched(config, choose, EVENTS)


def retried(config: Config, choose: Choose) -> Program:
    """As `held`, with reads that fail and are asked for again."""
    return _watched(config, choose, (*EVENTS, "fail", "fail"))


def resized(config: Config, choose: Choose) -> Program:
    """As `held`, with budgets that shrink and grow."""
    return _watched(config, choose, (*EVENTS, "resize"))


def seeded(config: Config, choose: Choose) -> Program:
    """As `held`, with profile keys seeded between."""
    return _watched(config, choose, (*EVENTS, "seed"))


def guessed(config: Config, choose: Choose) -> Program:
    """As `held`, with speculative reads."""
    return _watched(config, choose, (*EVENTS, "prefetch", "prefetch"))


def cleared(config: Config, choose: Choose) -> Program:
    """As `held`, with resets of history and of contents."""
    return _watched(config, choose, (*EVENTS, "reset"))


def rebound(config: Config, choose: Choose) -> Program:
    """As `held`, with changes of the model."""
    return _watched(config, choose, (*EVENTS, "rebind"))


def _watched(config: Config, choose: Choose, kinds: tuple[str, ...]) -> Program:
    oracle, model, operations = Oracle(config), config.geometry, list[Operation]()
    recent: dict[int, list[int]] = {layer: [] for layer in model.routed}

    def do(operation: Operation | None) -> None:
        for each in () if operation is None else (operation, *_looks(oracle, operation)):
            operations.append(each)

    for turn in range(4 + choose(28)):
        kind = kinds[choose(len(kinds))]
        if kind in CALM and choose(4):
            for operation in _endings(oracle):
                do(operation)
        do(draw(kind, turn, oracle, model, choose, recent))
    return Program(config, tuple(operations))


def _looks(oracle: Oracle, operation: Operation) -> Iterator[Operation]:
    """Do the operation; then a look at each record that each event may compute with."""
    oracle.apply(operation)
    for label in oracle.selections:
        for key in sorted(oracle.computable(label)):
            yield Operation("read", label=label, key=key)


def _endings(oracle: Oracle) -> Iterator[Operation]:
    """Every read ends, then every lease."""
    while oracle.machine.flights:
        yield Operation("complete", key=min(oracle.machine.flights))
    for label, selection in oracle.selections.items():
        if selection.ticket in oracle.machine.leases:
            yield Operation("release", label=label)


# ---------------------------------------------------------------------------------------------- whose are they


def blame(program: Program, got: bytes, implementation: Implementation) -> tuple[str, str]:
    """The rule that the bytes of the last operation break, and whose they are: found out, not inferred."""
    wanted, bound = _expected(program)
    note, model = _whose(program, wanted, got)
    if model not in ("", bound):
        return REBOUND, note
    failed = any(operation.op == "fail" for operation in program.operations)
    if failed and _looks_right(program, ("complete",), implementation):
        again = _looks_right(program, ("fail", "complete"), implementation)
        return WHOLE if again else FAILED, note
    return WHOLE, note


def _looks_right(program: Program, ends: tuple[str, ...], implementation: Implementation) -> bool:
    """Whether a fresh cache has the record right, once each of so many reads of it has ended so, one after the other.

    The record is that of the program's last look, and each event asks for nothing else.
    """
    key = program.operations[-1].key or Key(0, 0)
    operations: list[Operation] = []
    for label, end in enumerate(ends):
        event = Event(key.layer, ((key.expert,),), stream=label)
        operations += [Operation("select", event=event, label=label), Operation(end, key=key)]
        operations.append(Operation("release" if end == "fail" else "read", label=label, key=key))
    try:
        subject = subject_of(implementation, program.config)
        return [subject.apply(each) for each in operations][-1].content == program.config.content(key)
    except (Malformed, Crashed):
        return False


def _whose(program: Program, wanted: bytes, got: bytes) -> tuple[str, str]:
    """Where the bytes stop being right, and which record of which model has them there, if any has."""
    if len(got) != len(wanted):
        return f"{count(len(got), 'byte')}, not {len(wanted)}", ""
    wrong = [at for at, (ours, theirs) in enumerate(zip(wanted, got, strict=True)) if ours != theirs]
    where = f"{len(wrong)} of {count(len(got), 'byte')} wrong, from byte {wrong[0]} to {wrong[-1]}"
    model = program.config.geometry
    for name in _models(program):
        for key in (Key(layer, expert) for layer in model.routed for expert in range(model.experts)):
            record = program.config.content(key, name)
            if len(record) > wrong[-1] and all(record[at] == got[at] for at in wrong):
                return f"{where}: they are those of {show(key)} of {name}", name
    return where + (": they are zeros" if not any(got[at] for at in wrong) else ""), ""


def _expected(program: Program) -> tuple[bytes, str]:
    """What the last operation is answered with, and the model that is bound then."""
    oracle, answer = Oracle(program.config), Answer()
    for operation in program.operations:
        answer = oracle.apply(operation)
    return answer.content or b"", oracle.machine.fingerprint


def _models(program: Program) -> list[str]:
    """Fingerprints of all models that the program binds."""
    bound = [str(operation.text) for operation in program.operations if operation.op == "rebind"]
    return list(dict.fromkeys([program.config.fingerprint, *bound]))
