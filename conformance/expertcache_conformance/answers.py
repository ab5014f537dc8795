"""Answers: what an operation brought about, from the specification and from the implementation, in one shape."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from expertcache_conformance.adapters import Implementation
from expertcache_conformance.adapters.claims import card_of
from expertcache_conformance.adapters.own import PolicyAlone
from expertcache_conformance.adapters.protocol import Config
from expertcache_conformance.bounded import MOST, WIDEST, TooMuch, brief, taken
from expertcache_conformance.program import PREFETCH_COUNTS, Operation
from expertcache_spec import errors
from expertcache_spec.content import computable
from expertcache_spec.eviction import POLICIES, Form, make
from expertcache_spec.model import Budget, Key
from expertcache_spec.replay import run_event
from expertcache_spec.residency import Residency, Selection

CODES = {
    value.code
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, errors.ExpertCacheError) and value is not errors.ExpertCacheError
}

_EVENT = ("hits", "misses", "bypassed", "refused", "victims")
OF_OPERATION = {
    "step": _EVENT,
    "select": (*_EVENT, "reads", "joined"),
    "resume": (*_EVENT, "reads", "joined"),
    "complete": ("victims",),
    "fail": ("victims",),
    "release": ("victims", "refused"),
    "resize": ("victims",),
    "seed": ("installed",),
    "displace": ("victims",),
}
"""Operation to the key fields of its answer; everything else in an answer is ignored."""

KEY_FIELDS = ("hits", "misses", "bypassed", "refused", "victims", "reads", "joined", "installed")
OF_EVENT = (*KEY_FIELDS[:4], "reads", "joined")


@attrs.frozen
class Answer:
    """One answer. Order inside an event is left open by the specification, so keys are sets."""

    hits: frozenset[Key] = frozenset()
    misses: frozenset[Key] = frozenset()
    bypassed: frozenset[Key] = frozenset()
    refused: frozenset[Key] = frozenset()
    victims: frozenset[Key] = frozenset()
    reads: frozenset[Key] = frozenset()
    joined: frozenset[Key] = frozenset()
    installed: frozenset[Key] = frozenset()
    doubled: frozenset[Key] = frozenset()
    """Keys that an implementation names twice among its lookups; the specification never does."""
    outcome: str | None = None
    counts: tuple[int, int, int] | None = None
    prefetches: tuple[int, ...] | None = None
    """The numbers of `PREFETCH_COUNTS`, in that order."""
    content: bytes | None = None
    """The bytes that an event computes with."""
    error: str | None = None
    said: str = attrs.field(default="", eq=False)
    """What an error says of itself."""

    def describe(self) -> dict[str, Any]:
        """The answer as sorted plain data, what is empty left out."""
        names = [*KEY_FIELDS, "doubled"]
        out: dict[str, Any] = {n: [list(k) for k in sorted(getattr(self, n))] for n in names if getattr(self, n)}
        out |= {name: getattr(self, name) for name in ("outcome", "error") if getattr(self, name) is not None}
        if self.prefetches is not None:
            out |= dict(zip(PREFETCH_COUNTS, self.prefetches, strict=True))
        if self.content is not None:
            out["content"] = self.content.hex()
        return out | ({"present, ignored, refused": list(self.counts)} if self.counts is not None else {})


class Malformed(Exception):
    """An answer that is not of the protocol's form; the text says how (XC-CONF-001)."""


class Crashed(Exception):
    """The implementation raised something that is no declared refusal; the cause is chained."""


class Oracle:
    """The specification's machine behind the operations; every refusal of it is an answer.

    Unless another `form` is asked for, a policy that is none of the specification's is taken by its rule: its index may
    be what is examined.
    """

    def __init__(self, config: Config, machine: Residency | None = None, form: Form | None = None) -> None:
        self.config = config
        form = form or ("indexed" if config.policy in POLICIES else "declarative")
        self.machine = machine or Residency(
            config.geometry,
            config.budget,
            make(card_of(config.policy), form, config.future, config.parameters),
            config.settings,
            fingerprint=config.fingerprint,
        )
        self.selections: dict[int, Selection] = {}

    def apply(self, operation: Operation) -> Answer:
        """Do the operation; raises `KeyError` when it names an event that is not outstanding.

        Raises `Crashed` for a policy that is broken: what it answers says nothing of another's answers.
        """
        self.check_outstanding(operation)
        try:
            return self._apply(operation)
        except errors.InvalidPolicy as error:
            raise Crashed(f"{operation.op}: {error}") from error
        except errors.ExpertCacheError as error:
            return Answer(error=error.code)

    def check_outstanding(self, operation: Operation) -> None:
        """Raise `KeyError` when the operation names an event that is not outstanding."""
        if operation.op in ("release", "resume", "read", "displace") and operation.label not in self.selections:
            raise KeyError(operation.label)
        if operation.op == "read" and operation.key not in self.computable(operation.label):
            raise KeyError(operation.label)

    def computable(self, label: int | None) -> frozenset[Key]:
        """What the event of that label may compute with now; nothing once it has been released."""
        selection = self.selections[label or 0]
        return computable(self.machine, selection.ticket) if selection.ticket in self.machine.leases else frozenset()

    def _apply(self, operation: Operation) -> Answer:
        machine, op, key = self.machine, operation.op, operation.key
        if op == "step" and operation.event is not None:
            return _answer(run_event(machine, operation.event))
        if op == "select" and operation.event is not None and operation.label is not None:
            self.selections[operation.label] = selection = machine.select(operation.event)
            return _answer(selection)
        if op == "resume" and operation.label is not None:
            self.selections[operation.label] = selection = machine.resume(self.selections[operation.label])
            return _answer(selection)
        if op == "release" and operation.label is not None:
            return _answer(machine.release(self.selections[operation.label].ticket))
        if op in ("complete", "fail", "pin", "unpin") and key is not None:
            return _answer(getattr(machine, op)(key))
        if op == "read" and key is not None:
            return Answer(content=self.config.content(key, machine.fingerprint))
        if op == "prefetch" and key is not None:
            return Answer(outcome=machine.prefetch(key))
        if op == "displace" and key is not None and operation.label is not None:
            gone = machine.vacate(key, self.selections[operation.label].event, lambda victim: True)
            return Answer(victims=frozenset(gone), outcome=machine.prefetch(key))
        if op == "prefetch_counts":
            return Answer(prefetches=tuple(getattr(machine.counters, f"prefetch_{name}") for name in PREFETCH_COUNTS))
        if op in ("seed", "install") and operation.keys is not None:
            seeded = machine.seed(operation.keys, operation.priorities or ())
            for read in seeded.reads if op == "seed" else ():
                machine.complete(read)
            return Answer(installed=frozenset(seeded.reads), counts=(seeded.present, seeded.ignored, seeded.refused))
        if op == "resize":
            return Answer(victims=frozenset(machine.resize(Budget(operation.slots, operation.bytes))))
        getattr(machine, op)(operation.text)
        return Answer()


def _answer(outcome: object) -> Answer:
    """The sets of a Step, Selection, Progress or Ended."""
    found: dict[str, Any] = {name: frozenset(getattr(outcome, name, ())) for name in KEY_FIELDS}
    return Answer(**found)


class PolicyInMachine(Oracle):
    """The specification's machine around the indexed form of a policy that is judged by itself."""

    def apply(self, operation: Operation) -> Answer:
        """Do the operation; raises `Crashed` for whatever the policy raises that is no refusal.

        A victim that may not leave is an answer: one that the rule does not give.
        """
        self.check_outstanding(operation)
        try:
            return self._apply(operation)
        except errors.ExpertCacheError as error:
            return Answer(error=error.code, said=str(error))
        except Exception as error:
            raise Crashed(f"{operation.op} raised {type(error).__name__}: {error}") from error


def oracle_of(implementation: Implementation, config: Config) -> Oracle:
    """What judges the implementation: the specification; for a policy by itself its declarative form."""
    alone = isinstance(implementation.target, PolicyAlone)
    return Oracle(config, form="declarative" if alone else "indexed")


def subject_of(implementation: Implementation, config: Config) -> Subject | PolicyInMachine:
    """What is judged, freshly opened."""
    alone = isinstance(implementation.target, PolicyAlone)
    return PolicyInMachine(config, form="indexed") if alone else Subject(implementation, config)


class Subject:
    """An implementation's cache behind the operations."""

    def __init__(self, implementation: Implementation, config: Config) -> None:
        self.config, self.sequential = config, implementation.profile.replay == "sequential"
        self.tickets: dict[int, Any] = {}
        self.cache = self._call("open_cache", implementation.open, config)

    def _call(self, name: str, function: Any, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Exception as error:
            code = getattr(error, "code", None)
            if isinstance(code, str) and code in CODES:
                return {"error": code}
            raise Crashed(f"{name} raised {type(error).__name__}: {error}") from error

    def apply(self, operation: Operation) -> Answer:
        """Do the operation; raises `Malformed` or `Crashed`."""
        if isinstance(self.cache, Mapping):  # open_cache refused
            return self._parse(operation, self.cache)
        name, arguments = self._arguments(operation)
        method = getattr(self.cache, name, None)
        if method is None:
            raise Malformed(f"the cache has no method {name}, which its profile claims")
        raw = self._call(name, method, *arguments)
        if operation.op in ("select", "resume") and not _get(raw, "error"):
            ticket = _get(raw, "ticket")
            if ticket is None and operation.op == "select":
                raise Malformed("select answered without a ticket")
            self.tickets[operation.label or 0] = self.tickets.get(operation.label or 0) if ticket is None else ticket
        return self._parse(operation, raw)

    def _arguments(self, operation: Operation) -> tuple[str, tuple[Any, ...]]:
        op, event = operation.op, operation.event
        if op == "step" and self.sequential and event is not None:
            return "access", (event.keys[0],)
        if op in ("step", "select"):
            return op, (event,)
        if op in ("release", "resume"):
            return op, (self.tickets.get(operation.label or 0),)
        if op == "read":
            return op, (self.tickets.get(operation.label or 0), operation.key)
        if op == "seed":
            keys = list(operation.keys or ())
            return op, (keys,) if operation.priorities is None else (keys, list(operation.priorities))
        if op == "prefetch_counts":
            return op, ()
        if op == "resize":
            return op, (operation.slots, operation.bytes)
        return op, (operation.key if operation.key is not None else operation.text,)

    def _parse(self, operation: Operation, raw: Any) -> Answer:
        error = _get(raw, "error")
        if error is not None:
            if error not in CODES:
                raise Malformed(f"error {brief(error)} is none of {', '.join(sorted(CODES))}")
            return Answer(error=error)
        if operation.op == "step" and self.sequential and operation.event is not None:
            raw = _access(raw, operation.event.keys[0])
        fields = OF_OPERATION.get(operation.op, ())
        lists = {name: self._keys(name, _get(raw, name), operation) for name in fields}
        looked_up = Counter(key for name in ("hits", "misses", "bypassed") for key in lists.get(name, ()))
        found: dict[str, Any] = {name: frozenset(keys) for name, keys in lists.items()}
        found["doubled"] = frozenset(key for key, times in looked_up.items() if times > 1)
        if operation.op in ("step", "select") and not self.sequential and _get(raw, "hits") is None:
            raise Malformed(f"{operation.op} answered without hits")
        if operation.op == "seed":
            found["counts"] = _numbers(raw, operation.op, ("present", "ignored", "refused"))
        if operation.op == "prefetch_counts":
            found["prefetches"] = _numbers(raw, operation.op, PREFETCH_COUNTS)
        if operation.op == "read":
            found["content"] = _content(raw)
        return Answer(**found, outcome=_get(raw, "outcome") if operation.op == "prefetch" else None)

    def _keys(self, name: str, raw: Any, operation: Operation) -> list[Key]:
        if raw is None:
            return []
        if isinstance(raw, str | bytes) or not isinstance(raw, Iterable):
            raise Malformed(f"{name} is {brief(raw)}, not a collection of keys")
        try:
            keys = [self._key(name, item) for item in taken(raw)]
        except TooMuch as error:
            raise Malformed(f"{name} holds {error}") from None
        if name == "installed" and len(set(keys)) != len(keys):
            raise Malformed(f"{name} names a key twice: {sorted(keys)}")
        event = operation.event
        if event is not None and name in OF_EVENT and not set(keys) <= set(event.keys):
            raise Malformed(f"{name} names {sorted(set(keys) - set(event.keys))}, which the event does not ask for")
        return keys

    def _key(self, name: str, item: Any) -> Key:
        model = self.config.geometry
        try:
            layer, expert = (operator.index(part) for part in item)  # an endless one has too many at the third
        except (TypeError, ValueError):
            raise Malformed(f"{name} holds {brief(item)}, not a pair (layer, expert)") from None
        if layer not in model.routed or not 0 <= expert < model.experts:
            raise Malformed(f"{name} holds {brief(item)}, which is no key of the model")
        return Key(layer, expert)


def _get(raw: Any, name: str) -> Any:
    return raw.get(name) if isinstance(raw, Mapping) else getattr(raw, name, None)


def _numbers(raw: Any, op: str, names: tuple[str, ...]) -> tuple[int, ...]:
    counts = tuple(_get(raw, name) for name in names)
    if not all(type(count) is int and count.bit_length() <= WIDEST for count in counts):
        raise Malformed(f"{op} answers numbers under {', '.join(names)}")
    return counts


def _content(raw: Any) -> bytes:
    """The bytes of an answer."""
    try:
        view = memoryview(raw)
    except TypeError:
        raise Malformed(f"read answers {brief(raw)}, which has no bytes") from None
    if view.nbytes > MOST:
        raise Malformed(f"read answers more than {MOST} bytes")
    return view.tobytes()


def _access(raw: Any, key: Key) -> dict[str, Any]:
    """The answer to one access in the terms of a step."""
    hit = _get(raw, "hit")
    if type(hit) is not bool:
        raise Malformed(f"access answered hit = {brief(hit)}, not True or False")
    aside = next((name for name in ("bypassed", "refused") if _get(raw, name) is True), None)
    out: dict[str, Any] = {"victims": _get(raw, "victims"), "hits": [key] if hit else []}
    out["bypassed"] = [key] if aside == "bypassed" else []
    out["refused"] = [key] if aside == "refused" else []
    out["misses"] = [] if hit or aside == "bypassed" else [key]
    return out
