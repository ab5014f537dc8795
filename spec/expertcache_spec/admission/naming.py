"""Admissions by name: `always`, `sightings`, `sightings:n=3:again=8`. What setting `admission` accepts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import attrs

from expertcache_spec import wording
from expertcache_spec.admission import rules
from expertcache_spec.admission.rules import Admission
from expertcache_spec.errors import UnknownName
from expertcache_spec.eviction.cards import Parameter, Value, completed

ROOMS = ("reserve", "trim", "retain")


@attrs.frozen(slots=False)
class AdmissionCard:
    """One named admission.

    rule: id of the rule that states it. build: makes a fresh one, given the parameters by name. rooms: the values of
    setting `room` under which it is defined. needs: whether the policy must be able to compare (`can_refuse`).
    """

    name: str
    rule: str
    build: Callable[..., Admission]
    summary: str
    source: str
    rooms: tuple[str, ...] = ROOMS
    needs: bool = False
    parameters: tuple[Parameter, ...] = ()

    def complete(self, given: Mapping[str, Value]) -> dict[str, int]:
        """Every parameter with its value; raises `UnknownName` for one that does not exist or is out of bounds."""
        values = completed(self.parameters, given, f"admission {self.name}")
        return {name: int(value) for name, value in values.items()}


_LEAST, _MOST = 0, 1 << 31
ADMISSIONS: Mapping[str, AdmissionCard] = MappingProxyType(
    {
        card.name: card
        for card in (
            AdmissionCard("always", "XC-RES-028", Admission, "every miss that fits", "most engines"),
            AdmissionCard(
                "refusable", "XC-ADMIT-003", rules.Refusable, "unless the policy would rather keep its victim",
                "arXiv 2608.07911; PyMimircache", rooms=("reserve", "retain"), needs=True,
            ),
            AdmissionCard(
                "sightings", "XC-ADMIT-004", rules.Sightings, "from the nth request on", "turboquant",
                parameters=(
                    Parameter("n", 2, "events that must ask for it, this one included", least=1, most=_MOST),
                    Parameter("again", 0, "the same where it was resident before; 0: as n", least=0, most=_MOST),
                ),
            ),
            AdmissionCard(
                "hysteresis", "XC-ADMIT-005", rules.Hysteresis, "if hotter than the victim by a margin",
                "colibri, fak", rooms=("reserve",),
                parameters=(
                    Parameter("divisor", 4, "one in this many of the victim's heat is margin", least=1, most=_MOST),
                    Parameter("margin", 4, "requests by which it must be hotter besides", least=0, most=_MOST),
                    Parameter("halve", 0, "events between two halvings of all heat; 0: never", least=0, most=_MOST),
                ),
            ),
            AdmissionCard(
                "cold-slots", "XC-ADMIT-006", rules.ColdSlots, "into free room, or in place of a cold victim",
                "colibri #441, #497", rooms=("reserve",),
                parameters=(
                    Parameter("idle", 8, "events of its layer after which a record is cold", least=0, most=_MOST),
                ),
            ),
            AdmissionCard(
                "free-slots", "XC-ADMIT-007", rules.FreeSlots, "into free room only", "astronomical #537",
                rooms=("reserve",),
            ),
            AdmissionCard("never", "XC-ADMIT-008", rules.Never, "nothing", "static pin sets"),
            AdmissionCard(
                "whole-events", "XC-ADMIT-009", rules.WholeEvents, "unless the event does not fit alone",
                "llama.cpp plan cache, imp", rooms=("reserve", "trim"),
            ),
        )
    }
)  # fmt: skip
"""Admission name to card; the first is the default."""


def admission(text: str) -> tuple[AdmissionCard, dict[str, int]]:
    """The card and parameters of `NAME[:parameter=value...]`; raises `UnknownName` listing the known ones."""
    (name,), said = wording.split(text, "settings")
    if name not in ADMISSIONS:
        raise UnknownName(f"admission {name!r}", where="settings", cure=f"one of {', '.join(ADMISSIONS)}")
    card = ADMISSIONS[name]
    return card, card.complete(wording.values(card.parameters, said, f"admission {name}"))


def spelled(text: str) -> str:
    """The one spelling of an admission: parameters in the card's order, those at their default left out."""
    card, values = admission(text)
    return wording.spell(card.name, {p.name: values[p.name] for p in card.parameters if values[p.name] != p.default})


def make(text: str) -> Admission:
    """A fresh admission for one machine."""
    card, values = admission(text)
    return card.build(**values)
