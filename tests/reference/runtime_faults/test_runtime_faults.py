"""Each faulty runtime is found out, by name, within seconds; the sound one never is."""

from __future__ import annotations

from collections import Counter

import pytest

from ..runtime_programs import simulation
from .judging import judged
from .miniatures import MINIATURES


@pytest.mark.parametrize("name", MINIATURES)
def test_a_faulty_runtime_is_caught_by_the_rule_that_it_breaks(name: str) -> None:
    miniature = MINIATURES[name]
    machine = simulation(miniature.program.found, faults=miniature.faults, device=miniature.device)
    sound = judged(miniature.program, machine)
    found = judged(miniature.program, machine, miniature.patches)
    assert not sound.rules, sound.said
    assert found.rules & set(miniature.rules), found


def test_there_are_more_than_ten_and_each_breaks_something_of_its_own() -> None:
    assert len(MINIATURES) >= 10
    named = Counter(rule for each in MINIATURES.values() for rule in each.rules[:1])
    assert len(named) >= 10
