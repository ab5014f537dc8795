"""Typed errors: each names what is wrong, where, and the cure.

Every refusal of the specification is one of these, raised before any state has changed. `InvalidPolicy` alone is no
refusal: a policy found broken while it is at work leaves the machine that it served unusable.
"""

from __future__ import annotations

from typing import ClassVar


class ExpertCacheError(Exception):
    """Base of every error that the specification raises.

    `what` is the finding, `where` the place (a file and line, an event, an argument), `cure` what to do about it.
    `code` is the stable name that adapters and reports use for the class.
    """

    code: ClassVar[str] = "error"

    def __init__(self, what: str, *, where: str = "", cure: str = "") -> None:
        self.what, self.where, self.cure = what, where, cure
        super().__init__("".join([f"{where}: " if where else "", what, f". Cure: {cure}" if cure else ""]))

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.what, self.where, self.cure)


def _rebuild(kind: type[ExpertCacheError], what: str, where: str, cure: str) -> ExpertCacheError:
    return kind(what, where=where, cure=cure)


class InvalidModel(ExpertCacheError):
    """A geometry or a key that no model has: a negative id, an expert beyond the last one."""

    code = "invalid-model"


class InvalidBudget(ExpertCacheError):
    """A budget that cannot be read or enforced: no unit, neither slots nor bytes, unknown record size."""

    code = "invalid-budget"


class InvalidTrace(ExpertCacheError):
    """Routing data that breaks a rule of the trace chapter."""

    code = "invalid-trace"


class UnknownName(ExpertCacheError):
    """A policy, profile, mode or parameter value that does not exist; the known ones are listed."""

    code = "unknown-name"


class InvalidPolicy(ExpertCacheError):
    """A policy of one's own that keeps no contract: its card, its order function, or the victim that it names."""

    code = "invalid-policy"


class EventTooLarge(ExpertCacheError):
    """The distinct experts of one event do not fit by themselves, under overflow rule `error`."""

    code = "event-too-large"


class NoVictim(ExpertCacheError):
    """Room is needed and every resident record is leased, in flight or pinned, under no-victim rule `error`."""

    code = "no-victim"


class MustWait(NoVictim):
    """As `NoVictim`, under no-victim rule `wait`: nothing has changed; retry after a release."""

    code = "must-wait"


class WrongState(ExpertCacheError):
    """A transition that the present state does not offer: publish what is not in flight, release twice."""

    code = "wrong-state"


class StillInUse(ExpertCacheError):
    """A reset or rebind of contents while leases or reads are outstanding."""

    code = "still-in-use"


class NeedsFuture(ExpertCacheError):
    """An offline policy (Belady) on input whose future requests are not known."""

    code = "needs-future"
