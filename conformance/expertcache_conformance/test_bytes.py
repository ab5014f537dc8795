"""Chapter bytes: what an event computes with, looked at after every step."""

import pytest

from expertcache_conformance import looking
from expertcache_conformance.adapters import Config
from expertcache_conformance.examination import Examination
from expertcache_conformance.scenarios import Scenario

SIZES = (96, 40)
"""Bytes of a record by layer: several parts, and no two layers alike."""
EVEN = (72, 72)
"""The same of a model whose records are all of one size, as most are: any slot fits any record."""


def configs(exam: Examination, capability: str = "leases", **settings: str) -> list[Config]:
    """A tight and a roomy cache, of records of one size and of two; raises `NotClaimed`."""
    exam.events_only()
    exam.config(capability=capability)
    return [
        exam.config(slots=slots, experts=9, record_bytes=sizes, capability="bytes", settings=settings)
        for slots, sizes in ((4, EVEN), (6, SIZES), (9, EVEN))
    ]


@pytest.mark.rule("XC-BYTES-001", "XC-RES-004", "XC-RES-015")
def test_an_event_computes_with_its_own_whole_records_until_its_lease_ends(exam: Examination) -> None:
    exam.hunt(looking.held, *configs(exam), volume=80)


@pytest.mark.rule("XC-BYTES-001", "XC-RES-012", "XC-RES-014")
@pytest.mark.parametrize("slots", [2, 0])
def test_what_is_not_kept_is_computed_with_all_the_same(exam: Examination, slots: int) -> None:
    exam.events_only()
    settings = {"overflow": "bypass"} if slots else {}
    exam.hunt(
        looking.held, exam.config(slots=slots, record_bytes=SIZES, capability="bytes", settings=settings), volume=40
    )


@pytest.mark.rule("XC-BYTES-002", "XC-RES-016")
def test_nothing_of_a_failed_read_is_computed_with(exam: Examination) -> None:
    exam.hunt(looking.retried, *configs(exam, "faults"), volume=80)


@pytest.mark.rule("XC-BYTES-003", "XC-RES-023")
def test_after_a_rebind_every_byte_is_the_other_models(exam: Examination) -> None:
    exam.hunt(looking.rebound, *configs(exam, "rebind"), volume=60)


@pytest.mark.rule("XC-BYTES-001")
@pytest.mark.parametrize("capability", ["resize", "seeds", "prefetch", "reset"])
def test_bytes_stay_right_whatever_else_happens(exam: Examination, capability: str) -> None:
    scenarios: dict[str, Scenario] = {
        "resize": looking.resized, "seeds": looking.seeded, "prefetch": looking.guessed, "reset": looking.cleared,
    }  # fmt: skip
    exam.hunt(scenarios[capability], *configs(exam, capability)[:2], volume=40)
