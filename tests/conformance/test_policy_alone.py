"""`--policy`: a policy of one's own, its indexed form judged by its rule, before it is ported anywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from .suite import report, suite

OWN = '''
from expertcache_spec.eviction import Card, Parameter, Policy
from expertcache_spec.eviction.base import by_order, first_free
from expertcache_spec.model import Key


class Stack(Policy):
    """Most recent first: a dict in the order of touches."""

    def __init__(self):
        self.order = {}

    def insert(self, key, now):
        self.order[key] = None

    def settle(self, keys):
        for key in keys:
            self.order[key] = self.order.pop(key)

    def victim(self, held, incoming):
        return first_free(reversed(self.order), held)

    def evict(self, key):
        del self.order[key]


class Sleepy(Stack):
    """Forgets every second refresh."""

    def settle(self, keys):
        super().settle(keys[::2])


class Crashing(Stack):
    """Cannot evict what was inserted twice."""

    def evict(self, key):
        raise ZeroDivisionError


class Heedless(Stack):
    """Names what is held."""

    def victim(self, held, incoming):
        return next(reversed(self.order))


class Absent(Stack):
    """Names what has never been there."""

    def victim(self, held, incoming):
        return Key(0, 99)


rule = by_order(lambda past, key: (-past.touched[key],))
SOURCE = ("XC-EVICT-002", rule)
RIGHT = Card("mru", *SOURCE, Stack, "most recent", "here", "O(1)")
WRONG = Card("mru", *SOURCE, Sleepy, "most recent", "here", "O(1)")
HEEDLESS = Card("mru", *SOURCE, Heedless, "most recent", "here", "O(1)")
ABSENT = Card("mru", *SOURCE, Absent, "most recent", "here", "O(1)")
CRASHING = Card("mru", *SOURCE, Crashing, "most recent", "here", "O(1)")
BOTH = Card("mru", *SOURCE, rule, "most recent", "here", "O(n)")
'''

ADAPTER = """
from expertcache_spec.eviction.spelling import parse
from expertcache_spec.eviction import make
from expertcache_spec.replay import run_event
from expertcache_spec.residency import Residency

PROFILE = {"name": "port", "policies": ["own:RIGHT", "lru"]}


class Cache:
    def __init__(self, config):
        policy = make(parse(config.policy).card, parameters=config.parameters)
        self.machine = Residency(config.geometry, config.budget, policy, config.settings)

    def step(self, event):
        return run_event(self.machine, event)


open_cache = Cache
"""
SELECT = "test_generated_passes or test_adapter or test_leases"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "port.py").write_text(ADAPTER)
    return tmp_path


@pytest.mark.rule("XC-EVICT-002")
@pytest.mark.parametrize("card", [pytest.param("RIGHT", marks=pytest.mark.nightly), "BOTH"])
def test_a_policy_whose_index_keeps_its_rule_conforms(folder: Path, card: str) -> None:
    run = suite(folder, "--policy", f"own:{card}", "--impl-report", "found.json", select=SELECT)
    assert run.code == 0, run.text
    assert "mru conforms" in run.text
    assert report(folder / "found.json")["rules"]["XC-EVICT-002"]["verdict"] == "passed"


def test_a_policy_whose_index_departs_from_its_rule_is_shown_the_shortest_trace(folder: Path) -> None:
    run = suite(folder, "--policy", "own:WRONG", select=SELECT)
    assert run.code == 1
    assert "XC-EVICT-002" in run.text
    assert "the victim is" in run.text
    files = sorted((folder / ".expertcache-failures").glob("*.json"))
    assert files
    assert f"--policy own:WRONG --impl-replay {files[0]}" in run.text
    again = suite(folder, "--policy", "own:WRONG", "--impl-replay", str(files[0]))
    assert again.code == 1
    assert suite(folder, "--policy", "own:RIGHT", "--impl-replay", str(files[0])).code == 0


def test_a_policy_that_raises_is_an_error_of_the_policy(folder: Path) -> None:
    run = suite(folder, "--policy", "own:CRASHING", select="test_answers_are_well_formed")
    assert run.code == 1
    assert "ZeroDivisionError" in run.text


@pytest.mark.rule("XC-RES-005")
@pytest.mark.parametrize(("card", "why"), [("HEEDLESS", "is held"), ("ABSENT", "is not resident")])
def test_a_victim_that_may_not_leave_is_a_finding_that_names_it(folder: Path, card: str, why: str) -> None:
    run = suite(folder, "--policy", f"own:{card}", select="test_leases")
    assert run.code == 1
    assert "mru does not conform" in run.text
    assert "breaks XC-RES-005" in run.text
    assert "victim() named Key(" in run.text
    assert why in run.text
    assert "Traceback" not in run.text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--policy", "lur"), "one of fifo, lru"),
        (("--policy", "own:MISSING"), "no attribute"),
        (("--policy", "lru", "--impl", "ordered"), "give one of them"),
        (("--impl-list",), "needs --impl NAME or --policy NAME"),
    ],
)
def test_what_names_no_policy_is_refused(folder: Path, arguments: tuple[str, ...], said: str) -> None:
    run = suite(folder, *arguments)
    assert run.code == 4
    assert said in run.text


@pytest.mark.rule("XC-EVICT-002")
def test_a_port_claims_the_policy_that_it_ports(folder: Path) -> None:
    run = suite(folder, "--impl", "port", "--impl-report", "found.json", select=SELECT)
    assert run.code == 0, run.text
    assert "own:RIGHT" in run.text
    tests = report(folder / "found.json")["rules"]["XC-EVICT-002"]["tests"]
    assert tests["test_eviction::test_generated_passes[own]"] == "passed"
