"""What a miniature is: a profile, a cache, a sentence, and the rules that it breaks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from expertcache_conformance.adapters.protocol import Config


@attrs.frozen
class Miniature:
    """One test subject of the suite; its attributes make it an implementation.

    name: for `--impl`. sentence: what it does wrong, or oddly. source: the report it comes from. breaks: exactly the
    rule ids that the suite must find. cache: from a configuration to a cache. claims: profile fields beside the name.
    """

    name: str
    sentence: str
    source: str
    breaks: frozenset[str]
    cache: Callable[[Config], Any]
    claims: Mapping[str, Any]

    @property
    def PROFILE(self) -> dict[str, Any]:  # noqa: N802 - the protocol's name
        """The declared profile."""
        return {"name": self.name, "version": "1", "spec": "0.1", **self.claims}

    def open_cache(self, config: Config) -> Any:
        """A fresh cache."""
        return self.cache(config)
