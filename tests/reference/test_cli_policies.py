"""`expertcache policies`, and policies with parameters or of one's own on the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

from expertcache_spec.errors import InvalidPolicy
from expertcache_spec.eviction import POLICIES

from .files import CSV, put
from .running import process, run, run_json

OWN = '''
from expertcache_spec.eviction import Card, Parameter, lru
from expertcache_spec.eviction.base import by_order


def build(back):
    """Most recent first, or least."""
    return by_order((lambda past, key: (-past.touched[key],)) if back else lru.order)()


CARD = Card("mru", "XC-EVICT-020", build, build, "most recent", "here", "O(n)", (Parameter("back", True, "which end"),))
'''

BROKEN = """
from expertcache_spec.eviction import Card, Policy
from expertcache_spec.eviction.base import by_order


def card(answer):
    class Odd(Policy):
        def insert(self, key, now):
            pass

        def evict(self, key):
            pass

        def victim(self, held, incoming):
            return answer(held)

    return Card("odd", "XC-EVICT-002", Odd, Odd, "nothing", "here", "O(1)")


def ordered(order):
    rule = by_order(order)
    return Card("odd", "XC-EVICT-002", rule, rule, "nothing", "here", "O(1)")


def number(past, key):
    return 3


def misspelled(past, key):
    return (past.toched[key],)


NOTHING, TEXT = card(lambda held: None), card(lambda held: "0.1")
FOREIGN = card(lambda held: __import__("expertcache_spec").model.Key(0, 99))
RAISES = card(lambda held: 1 // 0)
NUMBER, MISSPELLED = ordered(number), ordered(misspelled)
NO_POLICY = Card("odd", "XC-EVICT-002", dict, dict, "nothing", "here", "O(1)")
"""


def test_every_policy_is_listed_with_its_parameters_source_and_cost() -> None:
    listed = {entry["name"]: entry for entry in run_json("policies")["policies"]}
    assert list(listed) == list(POLICIES)
    for name, card in POLICIES.items():
        assert {p["name"]: p["default"] for p in listed[name]["parameters"]} == card.complete()
        assert listed[name]["source"]
        assert listed[name]["cost"]
        assert all(p["meaning"] for p in listed[name]["parameters"])


def test_one_policy_is_shown_whole() -> None:
    shown = run("policies", "belady").out
    for word in ("XC-EVICT-050", "Belady 1966", "needed"):
        assert word in shown
    assert [entry["name"] for entry in run_json("policies", "belady")["policies"]] == ["belady"]


@pytest.mark.rule("XC-EVICT-001")
def test_a_reading_is_chosen_by_name_and_the_readings_are_listed(tmp_path: Path) -> None:
    listed = run_json("policies", "least-stale")["policies"][0]
    assert listed["readings"]["rnb"] == {"order": "line", "left_first": True, "requeue": True}
    assert list(listed["readings"]) == listed["parameters"][0]["choices"]
    assert "order=ring generations=false requeue=true first=newest" in run("policies", "least-stale").out
    chosen = run_json("policies", "least-stale:reading=rnb:order=ring")["policies"][0]["parameters"]
    values = {each["name"]: each["value"] for each in chosen}
    assert (values["order"], values["left_first"], values["boundary"]) == ("ring", True, "first_layer")
    refused = run("replay", put(tmp_path / "tiny.csv", CSV), "--policy", "least-stale:reading=rnd", "--slots", 3)
    assert (refused.code, "tinyserve | zhang | rnb" in refused.err) == (2, True)


def test_the_table_holds_every_name() -> None:
    words = run("policies").out.split()
    assert set(POLICIES) <= set(words)


@pytest.mark.rule("XC-EVICT-001")
def test_an_unknown_policy_or_parameter_is_refused(tmp_path: Path) -> None:
    trace = put(tmp_path / "tiny.csv", CSV)
    assert run("policies", "lur").code == 2
    assert "at 'garbage'" in run("policies", "static:keys=garbage").err
    assert "at most 18 digits" in run("policies", f"lfu-aged:every={10**20}").err
    ran = run("replay", trace, "--policy", "lru:speed=3", "--slots", "3")
    assert (ran.code, ran.out) == (2, "")
    assert "parameter 'speed'" in ran.err


def test_a_policy_of_ones_own_runs_beside_the_known_ones(tmp_path: Path) -> None:
    put(tmp_path / "tiny.csv", CSV)
    (tmp_path / "own.py").write_text(OWN)
    both = "own:CARD,own:CARD:back=false,lru"
    ran = process("-m", "expertcache_reference.cli", "compare", "tiny.csv", "--policies", both, "--slots", 4, "--json",
                  folder=tmp_path)  # fmt: skip
    assert ran.code == 0, ran.err
    rows = json.loads(ran.out)["rows"]
    assert [(row["policy"], row["parameters"]) for row in rows] == [
        ("mru", {"back": True}), ("mru", {"back": False}), ("lru", {}),
    ]  # fmt: skip
    assert rows[1]["hits"] == rows[2]["hits"]


@pytest.mark.rule("XC-RES-005")
@pytest.mark.parametrize("room", ["reserve", "trim"])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("NOTHING", "victim() named None, which"),
        ("TEXT", "victim() named '0.1', which is no Key"),
        ("FOREIGN", "victim() named Key(layer=0, expert=99), which is not resident"),
        ("RAISES", "victim() raised ZeroDivisionError"),
        ("NUMBER", "order function broken:number: returned 3"),
        ("MISSPELLED", "order function broken:misspelled: raised AttributeError: 'Past' object has no attribute"),
        ("NO_POLICY", "its form returned {}"),
    ],
)
def test_a_broken_policy_is_one_line_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str, room: str
) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "broken", raising=False)
    ran = run("replay", put(tmp_path / "tiny.csv", CSV), "--policy", f"broken:{name}", "--slots", 2, "--room", room,
              "--no-victim", "bypass", "--overflow", "bypass")  # fmt: skip
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert "Cure: " in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("wrong", [{"name": " "}, {"rule": "XC-EVICT-999"}, {"rule": ""}, {"declared": None},
                                   {"indexed": None}])  # fmt: skip
def test_a_card_that_is_none_is_refused_as_it_is_made(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidPolicy, match="Cure"):
        attrs.evolve(POLICIES["lru"], **wrong)
