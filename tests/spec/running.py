"""Running replays and comparing them, for the tests of the specification."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import get_args

from expertcache_spec.errors import ExpertCacheError
from expertcache_spec.eviction import Form, Value, make
from expertcache_spec.metrics import Counters
from expertcache_spec.model import Budget, Key
from expertcache_spec.replay import Replay, run_event
from expertcache_spec.residency import Residency, Settings, Step, audit
from expertcache_spec.trace import Event, Trace

from .settings_of_policies import SUBJECTS
from .strategies import Case, random_case

ROOT = Path(__file__).parents[2]


def steps(
    trace: Trace, policy: str, budget: Budget, settings: Settings | None = None, form: Form = "indexed"
) -> list[Step]:
    """Every step of one replay."""
    return list(Replay(trace, SUBJECTS[policy], budget, settings or Settings(), form=form))


def outcomes(case: Case, policy: str, form: Form = "indexed") -> tuple[list[Step | str], Counters, frozenset[Key]]:
    """What each event did, or the text of the error that refused it; then the counters and who is resident.

    An online policy goes on after a refusal, as an engine would; an offline one cannot.
    """
    run = Replay(case.trace, SUBJECTS[policy], case.budget, case.settings, form=form)
    found: list[Step | str] = []
    for event in run.events:
        try:
            found.append(run_event(run.machine, event))
        except ExpertCacheError as error:
            found.append(f"{error.code}: {error}")
            if SUBJECTS[policy].offline:
                break
        assert audit(run.machine) == []
    return found, run.machine.counters, run.machine.residents()


def both_run(
    policy: str,
    parameters: Mapping[str, Value],
    seed: int,
    dressed: Callable[[Trace, int], Trace] = lambda trace, seed: trace,
    prefetches: float = 0.4,
) -> int:
    """How many victims both forms agree on, with prefetches and resets of history between the events."""
    case, random = random_case(seed, policy, admission="always"), Random(seed)
    machines = [
        Residency(case.trace.geometry, case.budget, make(policy, form, None, parameters), case.settings)
        for form in get_args(Form)
    ]
    keys, victims = list(case.trace.geometry.keys()), 0
    for event in dressed(case.trace, seed).events:
        key = random.choice(keys) if random.random() < prefetches else None
        resets, found = random.random() < 0.05, []
        for machine in machines:
            if key is not None and machine.prefetch(key) == "started":
                machine.complete(key)
            if resets:
                machine.reset("history")
            try:
                found.append(run_event(machine, event))
            except ExpertCacheError:
                found.append(Step())
        assert found[0] == found[1], (seed, event)
        victims += len(found[0].victims)
    return victims


def serve(machine: Residency, event: Event) -> Step:
    """One whole event, with an audit."""
    step = run_event(machine, event)
    assert audit(machine) == []
    return step


def experts(keys: Sequence[Key]) -> list[int]:
    """The expert numbers of the keys, for one-layer examples."""
    return [key.expert for key in keys]


def python(*arguments: str, timeout: float = 600, **environment: str) -> str:
    """The standard output of this Python with `arguments`, run from the root of the repository."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "spec")]), **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
