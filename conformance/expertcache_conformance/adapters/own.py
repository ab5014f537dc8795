"""A policy by itself as the subject: its indexed form in the machine, judged by its declarative form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs

from expertcache_conformance.adapters.loading import CannotLoad, Implementation, look_in
from expertcache_conformance.adapters.planning import PLANNING
from expertcache_conformance.adapters.protocol import CAPABILITIES, parse_profile
from expertcache_spec import SPEC_VERSION
from expertcache_spec.errors import InvalidPolicy, UnknownName
from expertcache_spec.eviction.spelling import parse
from expertcache_spec.residency import SETTINGS


@attrs.frozen
class PolicyAlone:
    """What stands where an implementation's module would; the suite opens no cache of it."""

    PROFILE: dict[str, Any]

    def open_cache(self, config: object) -> object:
        """Never called: the machine serves (`answers.subject_of`)."""
        raise NotImplementedError


def load_policy(text: str, folder: Path | None = None) -> Implementation:
    """The policy of `--policy`, as an implementation that claims everything; raises `CannotLoad`."""
    look_in(folder)
    try:
        card = parse(text).card
    except (InvalidPolicy, UnknownName) as error:
        raise CannotLoad(str(error)) from error
    profile = {
        "name": card.name,
        "spec": SPEC_VERSION,
        "policies": [text],
        "settings": {
            name: [value for value in values if value != "refusable" or card.can_refuse]
            for name, values in SETTINGS.items()
        },
        "budgets": ["slots", "bytes"],
        "capabilities": [name for name in CAPABILITIES if name not in PLANNING and name != "bytes"],
    }
    return Implementation(text, parse_profile(profile), PolicyAlone(profile))
