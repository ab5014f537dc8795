"""What every implementation owes the suite before its cache is judged."""

from itertools import chain

import pytest

from expertcache_conformance.adapters.claims import card_of
from expertcache_conformance.examination import Examination, NotClaimed
from expertcache_conformance.hunt import seeded
from expertcache_conformance.scenarios import passes
from expertcache_spec.residency import SETTINGS


@pytest.mark.rule("XC-CONF-001")
def test_answers_are_well_formed(exam: Examination) -> None:
    exam.hunt(passes, exam.config(), volume=50)


@pytest.mark.rule("XC-CONF-002")
def test_the_same_operations_get_the_same_answers(exam: Examination) -> None:
    config = exam.config()
    for program in () if exam.dry else seeded(passes, config, 20):
        exam.repeat(program)


@pytest.mark.rule("XC-CONF-003", "XC-EVICT-001")
@pytest.mark.parametrize("setting", SETTINGS)
def test_every_claimed_value_of_a_setting_is_offered(exam: Examination, setting: str) -> None:
    values = exam.implementation.profile.values(setting)
    policies = [name for name in exam.implementation.profile.claims if _can(name, setting, values)]
    if not policies:
        raise NotClaimed(f"{setting} {', '.join(values)} with a policy that it applies to")
    configs = [exam.config(name, slots=5, layers=1, settings={setting: value}) for name in policies for value in values
               if _can(name, setting, (value,))]  # fmt: skip
    exam.exhaust(chain.from_iterable(seeded(passes, config, 4) for config in configs))


def _can(policy: str, setting: str, values: tuple[str, ...]) -> bool:
    return setting != "admission" or values != ("refusable",) or card_of(policy).can_refuse
