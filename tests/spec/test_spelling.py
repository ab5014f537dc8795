"""Policies in words."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from expertcache_spec.errors import UnknownName
from expertcache_spec.eviction import POLICIES, Card, Parameter, Policy, Value
from expertcache_spec.eviction.base import by_order
from expertcache_spec.eviction.lru import Lru, order
from expertcache_spec.eviction.spelling import load, parse, spell
from expertcache_spec.identify import turns

TAKES = (Parameter("every", 100, "accesses"), Parameter("share", 0.5, "of the slots", least=0, most=1),
         Parameter("way", "up", "which", choices=("up", "down")), Parameter("strict", True, "whether"))  # fmt: skip


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module of one's own that offers a card, something else, and a name that is taken."""
    module = ModuleType("own_policies")
    rule, indexed = (lambda **_: by_order(order)()), (lambda **_: Lru())
    module.CARD = Card("mine", "XC-EVICT-020", rule, indexed, "mine", "here", "O(1)", TAKES)  # type: ignore[attr-defined]
    module.TAKEN = Card("lru", "XC-EVICT-020", rule, indexed, "mine", "here", "O(1)")  # type: ignore[attr-defined]
    module.Policy = Policy  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "own_policies", module)
    return module


@pytest.mark.rule("XC-EVICT-001")
def test_every_policy_is_spelled_by_its_name() -> None:
    for name, card in POLICIES.items():
        assert parse(name).card is card
        assert str(parse(name)) == name


@pytest.mark.rule("XC-EVICT-001")
def test_every_default_reads_back_from_its_own_spelling() -> None:
    for name, card in POLICIES.items():
        values = card.complete()
        assert parse(spell(name, values)).parameters == values


@pytest.mark.usefixtures("own")
def test_a_card_of_ones_own_is_spelled_by_its_module_and_takes_typed_parameters() -> None:
    found = parse("own_policies:CARD:every=7:share=1:way=down:strict=false")
    assert found.card.name == "mine"
    assert found.parameters == {"every": 7, "share": 1.0, "way": "down", "strict": False}
    assert str(found) == "mine:every=7:share=1.0:way=down:strict=false"


@pytest.mark.rule("XC-EVICT-001")
@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lur", "one of fifo, lru"),
        ("", "one of fifo, lru"),
        ("lru:every=3", "parameter 'every'. Cure: it takes none"),
        ("every=3:lru", "NAME:parameter=value"),
        ("a:b:c", "NAME:parameter=value"),
        ("lru:", "NAME:parameter=value"),
        ("lfu-aged:every", "NAME:parameter=value"),
        ("own_policies:CARD:every=x", "a whole number; default 100"),
        ("own_policies:CARD:every=+7", "a whole number"),
        ("own_policies:CARD:every=1_000", "a whole number"),
        ("own_policies:CARD:every=٤", "a whole number"),
        ("own_policies:CARD:share=0_1", "a number"),
        ("own_policies:CARD:=1", "NAME:parameter=value"),
        ("own_policies:CARD:share=2", "a number from 0 to 1"),
        ("own_policies:CARD:share=nan", "a number from 0 to 1"),
        ("own_policies:CARD:way=left", "up | down"),
        ("own_policies:CARD:strict=yes", "true or false"),
        ("own_policies:CARD:every=1:every=2", "given twice"),
        ("own_policies:Policy", "no Card"),
        ("own_policies:MISSING", "has no attribute 'MISSING'. Cure: its cards are CARD, TAKEN"),
        ("own_policies:TAKEN", "is a policy of the specification"),
        ("no_such_module:CARD", "cannot be imported"),
    ],
)
def test_a_spelling_that_means_nothing_is_refused_with_the_cure(text: str, said: str) -> None:
    with pytest.raises(UnknownName) as raised:
        parse(text)
    assert said in str(raised.value)


@pytest.mark.rule("XC-EVICT-001")
@pytest.mark.parametrize(
    ("policy", "values", "said"),
    [
        ("clock", {"initial": 2}, "initial 2 is above ceiling 1"),
        ("clock-lru-k", {"bar": 16}, "bar 16 is above ceiling 15"),
        ("clock-lru-k", {"low": 5001}, "low 5001 is above high 5000"),
    ],
)
def test_values_that_cannot_go_together_are_refused(policy: str, values: dict[str, Value], said: str) -> None:
    with pytest.raises(UnknownName, match=said):
        POLICIES[policy].complete(values)
    assert all(POLICIES[policy].complete(dict([turn])) for turn in turns(POLICIES[policy], {}))


def test_a_module_that_fails_at_import_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "broken_policies", None)
    with pytest.raises(UnknownName, match="broken_policies cannot be imported"):
        load("broken_policies", "CARD")
