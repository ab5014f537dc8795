"""What a runtime refuses beside what the residency machine refuses."""

from __future__ import annotations

from typing import ClassVar

from expertcache_spec.errors import ExpertCacheError


class RuntimeClosed(ExpertCacheError):
    """The runtime was closed, before or while somebody waited."""

    code: ClassVar[str] = "runtime-closed"


def closed(where: str) -> RuntimeClosed:
    """The error for a call to a closed runtime."""
    return RuntimeClosed("the runtime is closed", where=where, cure="open another one")
