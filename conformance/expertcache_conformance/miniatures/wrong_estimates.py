"""Wrong ones of the engines' policies and of the predictive ones: a plain right cache with one thing broken."""

from __future__ import annotations

from collections import Counter

from expertcache_conformance.adapters.protocol import Config
from expertcache_conformance.miniatures.estimates import UNIT, Expected, Hot, Layered, Scored, Stale
from expertcache_conformance.miniatures.predictions import Classes, Intervals, Ranked, Recent, Shares
from expertcache_conformance.miniatures.wrong import miniature
from expertcache_spec.model import Key
from expertcache_spec.trace import Event

# ------------------------------------------------------------------------------------------ engines


@miniature("ds4 before 3d65923c", "XC-EVICT-181", policies=["route-hotness:halve_every=2"])
class HotnessOfResidents(Hot):
    """Only the selections of resident records are counted."""

    def add(self, event: Event) -> None:
        """Hits only."""
        self.hot.update(key for key in event.selections() if key in self.stamp)


@miniature("ds4 section 9, item 16", "XC-EVICT-182", policies=["route-hotness:halve_every=2"])
class HotnessHalvedAfterTheToken(Hot):
    """The token that completes a period is counted before the halving."""

    def age(self) -> None:
        """Not yet."""

    def add(self, event: Event) -> None:
        """Count, then halve."""
        super().add(event)
        super().age()


@miniature("ds4#636", "XC-EVICT-180", policies=["route-hotness:halve_every=2"])
class RecencyBeforeHotness(Hot):
    """Hotness decides between equally recent records only, of which there are none."""

    def order(self, key: Key) -> tuple[int, ...]:
        """The other way round."""
        return (self.stamp[key], self.hot[key])


@miniature("ds4 before 8edc3c7d", "XC-EVICT-184", policies=["route-hotness:halve_every=2"])
class HotnessOfTheLastPrompt(Hot):
    """A new prompt starts with the hotness of the one before."""

    def begin_anew(self) -> None:
        """Nothing."""


@miniature("ds4#636", "XC-EVICT-185", policies=["route-hotness:halve_every=2"], capabilities=["seeds", "priorities"])
class PrioritiesAreNotRead(Hot):
    """Every seed adds one, whatever its priority."""

    def lent(self, priority: int) -> int:
        """One."""
        return 1


@miniature("survey of policies 4.2 c", "XC-EVICT-201", policies=["least-stale:order=layer"])
class BoundaryOneEventLate(Stale):
    """What is current becomes stale after the first event of a pass instead of before it."""

    due = False

    def bound(self, event: Event) -> None:
        """What was due; the rest with the next event."""
        self.number += self.due
        self.due = event.layer == self.lowest


@miniature("SpecMD's FLD with its sign lost", "XC-EVICT-210", policies=["farthest-layer"])
class NearestLayerFirst(Layered):
    """The running layer is the first to give."""

    def distance(self, layer: int) -> int:
        """Nearness."""
        return -super().distance(layer)


@miniature("survey of policies 5", "XC-EVICT-211", policies=["farthest-layer:distance=ahead"])
class LayersBehindInsteadOfAhead(Layered):
    """How long ago a layer ran is taken for how long until it runs again."""

    def distance(self, layer: int) -> int:
        """Round the other way."""
        return (self.here - layer) % (self.highest + 1)


@miniature("survey of policies 5", "XC-EVICT-221", policies=["score"])
class EveryChoiceScoresOne(Scored):
    """Weights are not looked at: every selection adds one."""

    def given(self, event: Event) -> Counter[Key]:
        """One each."""
        return Counter({key: UNIT * event.multiplicity(key) for key in event.keys})


@miniature("survey of policies 5", "XC-EVICT-222", policies=["score"])
class OnlyTheLastWeightCounts(Scored):
    """The latest event's weights take the place of the sum."""

    def note(self, event: Event, began: bool) -> None:
        """Overwrite."""
        self.sums.update(dict.fromkeys(event.keys, 0))
        for key, units in self.given(event).items():
            self.sums[key] = units


@miniature("FineMoE; survey of policies 21", "XC-EVICT-231", policies=["probability-visits"])
class ProductsInAnInteger(Expected):
    """Probability times visits is stored in an integer, where most products are zero."""

    def product(self, key: Key) -> int:
        """Rounded down."""
        return super().product(key) // UNIT


@miniature("FineMoE without its maps", "XC-EVICT-232", policies=["probability-visits"])
class LatestEventForTheMatchedPass(Expected):
    """The probability is what the latest event of the layer gave, not what a matched pass did."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.layers: dict[int, Counter[Key]] = {}

    def match(self, event: Event) -> None:
        """The latest of every layer."""
        self.layers[event.layer] = Counter({k: units // len(event.rows) for k, units in self.given(event).items()})
        self.likely = sum(self.layers.values(), Counter[Key]())


# ------------------------------------------------------------------------------------------ predictions


@miniature("field report on V4.1 Flash", "XC-EVICT-281", policies=["hazard"])
class LearnsFromResidentsAlone(Classes):
    """The table of ages is learned from what is resident, and so from the policy that it feeds."""

    def known(self) -> list[Key]:
        """Residents."""
        return [key for key in self.visited if key in self.stamp]


@miniature("field report on V4.1 Flash", "XC-EVICT-271", policies=["popularity"])
class LearnsFromHitsAlone(Shares):
    """Only the requests of resident records are learned from."""

    def note(self, event: Event, began: bool) -> None:
        """Hits, and how many rows there were."""
        known = self.asked_rows.copy()
        super().note(event, began)
        for key in event.keys:
            if key not in self.stamp:
                self.asked_rows[key] = known[key]


@miniature("EWMA with a weight of one", "XC-EVICT-306", policies=["ewma-interval"])
class TheLastIntervalIsTheMean(Intervals):
    """The latest interval takes the place of the mean."""

    def blend(self, mean: int, interval: int) -> int:
        """The latest."""
        return interval


@miniature("phase 5e, first appearances", "XC-EVICT-291", policies=["last-rank"])
class RankByFirstAppearance(Ranked):
    """The rank of a key is its place in the batch, not in the row that ranks it best."""

    def place(self, key: Key, event: Event) -> int:
        """In order of appearance."""
        return event.keys.index(key)


@miniature("one window for all layers", "XC-EVICT-301", policies=["recent-frequency:window=2"])
class EveryLayerMovesTheWindow(Recent):
    """Events of other layers push requests out of the window."""

    def window(self, layer: int) -> list[Event]:
        """All of them."""
        return self.seen
