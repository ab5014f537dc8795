"""Short ways to ask what a policy with parameters does, for the tests of the counting policies."""

from __future__ import annotations

from collections.abc import Sequence

from expertcache_spec.eviction import Value
from expertcache_spec.metrics import Row
from expertcache_spec.model import Budget
from expertcache_spec.replay import Replay, replay
from expertcache_spec.residency import Step
from expertcache_spec.trace import decode_trace

from .running import outcomes
from .settings_of_policies import SUBJECTS
from .strategies import Case


def steps_of(case: Case, policy: str, **parameters: Value) -> list[Step | str]:
    """What each event of the case did, or the refusal."""
    name = "under test"
    SUBJECTS[name] = SUBJECTS[policy].setting(name, **parameters)
    try:
        return outcomes(case, name)[0]
    finally:
        del SUBJECTS[name]


def victims(rows: Sequence[Sequence[int]], policy: str, slots: int, layers: int = 1, **parameters: Value) -> list[int]:
    """The experts that leave, in order, when one decode stream asks for these rows; the same in both forms."""
    found = []
    for form in ("indexed", "declarative"):
        run = Replay(decode_trace(rows, layers=layers), policy, Budget(slots=slots), form=form, parameters=parameters)  # type: ignore[arg-type]
        found.append([key.expert for step in run for key in step.victims])
    assert found[0] == found[1]
    return found[0]


def outcome(rows: Sequence[Sequence[int]], policy: str, slots: int, **parameters: Value) -> Row:
    """The totals of the same."""
    return replay(decode_trace(rows), policy, Budget(slots=slots), parameters=parameters).total
