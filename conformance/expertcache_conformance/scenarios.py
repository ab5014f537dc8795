"""Scenarios: generators of programs, one source for seeded volume and for hypothesis.

A scenario draws whole numbers from `choose(n)`, which answers 0 to n - 1: a seeded random number, or a hypothesis
draw that shrinks towards 0. Small numbers therefore mean simple programs. Programs that take events apart are drawn
while the specification's machine runs them, so every operation is one that a caller may do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product

from expertcache_conformance.adapters.protocol import Config
from expertcache_conformance.answers import Answer, Oracle
from expertcache_conformance.program import Operation, Program, steps
from expertcache_spec.model import Geometry, Key
from expertcache_spec.trace import Event

Choose = Callable[[int], int]
Scenario = Callable[[Config, Choose], Program]


def pick_row(model: Geometry, choose: Choose, recent: list[int]) -> tuple[int, ...]:
    """One token's experts, ranked and distinct; half of them from what the layer used lately."""
    row: list[int] = []
    for _ in range(1 + choose(model.top_k)):
        expert = recent[choose(len(recent))] if recent and choose(2) else choose(model.experts)
        if expert not in row:
            row.append(expert)
    recent[:0] = row
    del recent[model.top_k * 2 :]
    return tuple(row)


def layer_ordered_events(model: Geometry, choose: Choose, passes: int, rows: int = 3) -> tuple[Event, ...]:
    """Passes over all layers: a prefill of up to `rows` rows now and then, else decode, with some locality."""
    recent: dict[int, list[int]] = {layer: [] for layer in model.routed}
    events = []
    for index in range(passes):
        height = 1 + (choose(rows) if rows > 1 and choose(4) == 3 else 0)
        for layer in model.routed:
            token_rows = tuple(pick_row(model, choose, recent[layer]) for _ in range(height))
            events.append(Event(layer, token_rows, pass_index=index, phase="prefill" if height > 1 else "decode"))
    return tuple(events)


def passes(config: Config, choose: Choose) -> Program:
    """Whole events, one after the other: the bread and butter of a cache. Top-1 models get single keys only."""
    single = config.geometry.top_k == 1
    return steps(
        config, layer_ordered_events(config.geometry, choose, 1 + choose(24 if single else 8), 1 if single else 3)
    )


def pressure(config: Config, choose: Choose) -> Program:
    """Forty small events, some of two rows, where most misses evict."""
    return steps(config, layer_ordered_events(config.geometry, choose, 40, min(2, config.geometry.top_k)))


def conversations(config: Config, choose: Choose) -> Program:
    """Up to three conversations, each with a prompt from position 0; every choice has its weight, every expert a score.

    Conversations follow each other, or take turns pass by pass.
    """
    model = config.geometry
    lengths = [1 + choose(6) for _ in range(1 + choose(3))]
    order = [stream for stream, length in enumerate(lengths) for _ in range(length)]
    if choose(2):
        order = [stream for turn in range(max(lengths)) for stream, length in enumerate(lengths) if turn < length]
    recent: dict[int, list[int]] = {layer: [] for layer in model.routed}
    begun = [0] * len(lengths)
    events: list[Event] = []
    for stream in order:
        events += _weighed_pass(model, choose, stream, begun[stream], recent)
        begun[stream] += 1
    return steps(config, tuple(events))


def _weighed_pass(
    model: Geometry, choose: Choose, stream: int, number: int, recent: dict[int, list[int]]
) -> Iterator[Event]:
    """A prompt of up to three rows, or one token; weights and scores are sixteenths."""
    prompt = number == 0 and choose(4) > 0
    height = 1 + choose(3) if prompt and model.top_k > 1 else 1
    for layer in model.routed:
        rows = tuple(pick_row(model, choose, recent[layer]) for _ in range(height))
        weights = tuple(tuple((1 + choose(8)) / 16 for _ in row) for row in rows)
        first = choose(16)
        scores = tuple(
            tuple((7 * (expert + first) + row[0]) % 16 / 16 for expert in range(model.experts)) for row in rows
        )
        positions = tuple(range(height)) if number == 0 else None
        yield Event(
            layer, rows, stream, number, "prefill" if prompt else "decode", weights, scores, positions=positions
        )


def endurance(config: Config, choose: Choose) -> Program:
    """Thousands of accesses to a small cache: what goes wrong once in a thousand."""
    return steps(config, layer_ordered_events(config.geometry, choose, 500, 1))


def long_counts(config: Config, choose: Choose) -> Program:
    """Some keys asked for dozens of times, then a rival: what a ceiling or a lost count would reorder."""
    model, times = config.geometry, 1 + choose(40)
    first, second = choose(model.experts), choose(model.experts)
    events = [first] * (times + choose(3)) + [second] * times + [choose(model.experts) for _ in range(4)]
    return steps(config, tuple(Event(model.routed[0], ((expert,),)) for expert in events))


def ceilings(config: Config, choose: Choose) -> Program:
    """Two keys asked for more often than a few bits can count, then a rival: the less often asked for must go."""
    model = config.geometry
    times = (1 << (4 + choose(5))) - 1
    rivals = [2 + choose(model.experts - 2) for _ in range(3)]
    events = [0] * (times + 1 + choose(3)) + [1] * times + rivals
    return steps(config, tuple(Event(model.routed[0], ((expert,),)) for expert in events))


def leases(config: Config, choose: Choose) -> Program:
    """Several events outstanding at once, reads ending in any order, now and then a failed one."""
    return _interleaved(config, choose, ("select", "complete", "release"))


def joins(config: Config, choose: Choose) -> Program:
    """A key whose read others join, one asked for more or less often in whole events, and a rival for room for two.

    How often the two are asked for differs in every program, so that who goes is a matter of the count alone.
    """
    oracle, model, operations = Oracle(config), config.geometry, list[Operation]()
    layer, experts = model.routed[0], list(range(model.experts))
    met, whole, rival = (experts.pop(choose(len(experts))) for _ in range(3))

    def do(operation: Operation) -> Answer:
        operations.append(operation)
        return oracle.apply(operation)

    def serve(expert: int) -> None:
        do(Operation("step", event=Event(layer, ((expert,),), stream=len(operations))))

    requests = 2 + choose(3)
    others = [count for count in range(1, 8) if count != requests]
    served, last = others[choose(len(others))], choose(2)
    for _ in range(0 if last else served):
        serve(whole)
    for label in range(requests):
        do(Operation("select", event=Event(layer, ((met,),), stream=len(operations)), label=label))
    for key in sorted(oracle.machine.flights):
        do(Operation("complete", key=key))
    for label, selection in list(oracle.selections.items()):
        if selection.ticket in oracle.machine.leases:
            do(Operation("release", label=label))
    for expert in (*[whole] * (served if last else 0), rival, met, whole):
        serve(expert)
    return Program(config, tuple(operations))


def faults(config: Config, choose: Choose) -> Program:
    """As `leases`, with reads that fail and are asked for again."""
    return _interleaved(config, choose, ("select", "complete", "release", "fail"))


def prefetches(config: Config, choose: Choose) -> Program:
    """As `leases`, with speculative reads between."""
    return _interleaved(config, choose, ("select", "complete", "release", "prefetch"))


def failed_prefetches(config: Config, choose: Choose) -> Program:
    """As `prefetches`, with reads of either kind that fail."""
    return _interleaved(config, choose, ("select", "complete", "release", "prefetch", "fail"))


def meetings(config: Config, choose: Choose) -> Program:
    """Speculative reads of what is asked for next: twice, met in flight, met when they are there, or wasted."""
    oracle, model, operations = Oracle(config), config.geometry, list[Operation]()

    def do(operation: Operation) -> Answer:
        operations.append(operation)
        return oracle.apply(operation)

    recent: dict[int, list[int]] = {layer: [] for layer in model.routed}
    for turn in range(2 + choose(8)):
        layer = model.routed[turn % len(model.routed)]
        row = pick_row(model, choose, recent[layer])
        key = Key(layer, row[choose(len(row))] if choose(4) else choose(model.experts))
        for _ in range(1 + choose(2)):
            do(Operation("prefetch", key=key))
        if choose(2) and key in oracle.machine.flights:
            do(Operation("complete", key=key))
        answer = do(Operation("select", event=Event(layer, (row,), stream=turn), label=turn))
        for pending in sorted(answer.reads | answer.joined):
            do(Operation("complete", key=pending))
        if not answer.error:
            do(Operation("release", label=turn))
    return Program(config, tuple(operations))


def counted_prefetches(config: Config, choose: Choose) -> Program:
    """`meetings` or `prefetches`, and then what became of the prefetches."""
    program = (meetings, prefetches)[choose(2)](config, choose)
    return Program(config, (*program.operations, Operation("prefetch_counts")))


def pins(config: Config, choose: Choose) -> Program:
    """Events, with residents pinned and unpinned between."""
    return _interleaved(config, choose, ("step", "pin", "unpin"))


def seeds(config: Config, choose: Choose) -> Program:
    """Events, with profile keys seeded between; some are no key of the model."""
    return _interleaved(config, choose, ("step", "seed"))


def priorities(config: Config, choose: Choose) -> Program:
    """As `seeds`, each key with a priority of its own; the first are seeded before any event."""
    first = draw("priorities", 0, Oracle(config), config.geometry, choose, {})
    return _interleaved(config, choose, ("step", "priorities"), [] if first is None else [first])


def resizes(config: Config, choose: Choose) -> Program:
    """Events, with budgets that shrink and grow between."""
    return _interleaved(config, choose, ("step", "resize"))


def resets(config: Config, choose: Choose) -> Program:
    """Events, with resets of history and of contents between."""
    return _interleaved(config, choose, ("step", "reset"))


def rebinds(config: Config, choose: Choose) -> Program:
    """Events, with changes of the model between, some of them to the model that is already bound."""
    return _interleaved(config, choose, ("step", "rebind"))


def _interleaved(config: Config, choose: Choose, kinds: tuple[str, ...], begin: Iterable[Operation] = ()) -> Program:
    oracle, model = Oracle(config), config.geometry
    operations = list(begin)
    for operation in operations:
        oracle.apply(operation)
    recent: dict[int, list[int]] = {layer: [] for layer in model.routed}
    for turn in range(2 + choose(16)):
        kind = kinds[choose(len(kinds))] if choose(2) else kinds[0]
        drawn = draw(kind, turn, oracle, model, choose, recent)
        if drawn is None:
            continue
        operations.append(drawn)
        oracle.apply(drawn)
    return Program(config, tuple(operations))


def draw(
    kind: str, turn: int, oracle: Oracle, model: Geometry, choose: Choose, recent: dict[int, list[int]]
) -> Operation | None:
    """One operation of that kind which the machine's present state offers; None when there is none."""
    machine = oracle.machine

    def among(keys: frozenset[Key] | list[Key]) -> Key | None:
        ordered = sorted(keys)
        return ordered[choose(len(ordered))] if ordered else None

    if kind in ("step", "select"):
        layer = model.routed[turn % len(model.routed)]
        event = Event(layer, (pick_row(model, choose, recent[layer]),), stream=turn, phase="decode")
        return Operation(kind, event=event, label=turn if kind == "select" else None)
    if kind in ("complete", "fail"):
        key = among(list(machine.flights))
        return None if key is None else Operation(kind, key=key)
    if kind == "release":
        ready = [label for label, s in oracle.selections.items() if s.ticket in machine.leases
                 and not machine.leases[s.ticket].pending]  # fmt: skip
        return Operation("release", label=ready[choose(len(ready))]) if ready else None
    if kind in ("pin", "unpin"):
        key = among(machine.residents() - machine.pinned() if kind == "pin" else machine.pinned())
        return None if key is None else Operation(kind, key=key)
    if kind == "prefetch":
        return Operation(kind, key=Key(model.routed[choose(len(model.routed))], choose(model.experts)))
    if kind in ("seed", "priorities"):
        listed = [Key(choose(model.layers + 1), choose(model.experts + 2)) for _ in range(1 + choose(4))]
        lent = tuple(choose(6) for _ in listed) if kind == "priorities" else None
        return Operation("seed", keys=tuple(listed), priorities=lent)
    if kind == "resize":
        return Operation(kind, slots=model.top_k + choose(model.top_k * 2))
    if kind == "reset":
        return Operation(kind, text=("history", "contents")[choose(2)])
    return Operation("rebind", text=("model-a", "model-b")[choose(2)])


# ---------------------------------------------------------------------------------------------- enumeration


def every_sequence(config: Config, keys: int, length: int) -> Iterator[Program]:
    """Every sequence of single-key events over `keys` experts of one layer, the short ones first."""
    for size in range(1, length + 1):
        for experts in product(range(keys), repeat=size):
            yield steps(config, tuple(Event(0, ((expert,),), pass_index=i) for i, expert in enumerate(experts)))


def every_set_sequence(config: Config, keys: int, length: int) -> Iterator[Program]:
    """Every sequence of events over `keys` experts of one layer, each event a non-empty set of up to top-k of them."""
    top_k = config.geometry.top_k
    sets = [tuple(k for k in range(keys) if mask >> k & 1) for mask in range(1, 1 << keys)]
    sets = [chosen for chosen in sets if len(chosen) <= top_k]
    for size in range(1, length + 1):
        for chosen in product(sets, repeat=size):
            yield steps(config, tuple(Event(0, (experts,), pass_index=i) for i, experts in enumerate(chosen)))
