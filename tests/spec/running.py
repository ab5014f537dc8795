"""Running replays and comparing them, for the tests of the specification."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from expertcache_spec.errors import ExpertCacheError
from expertcache_spec.eviction import Form
from expertcache_spec.metrics import Counters
from expertcache_spec.model import Budget, Key
from expertcache_spec.replay import Replay, run_event
from expertcache_spec.residency import Residency, Settings, Step, audit
from expertcache_spec.trace import Event, Trace

from .settings_of_policies import SUBJECTS
from .strategies import Case

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
