"""The wrong ones. Each is the plain cache with one thing broken, after a report from a real engine or simulator."""

from __future__ import annotations

from typing import Any

from expertcache_conformance.miniatures.subject import Miniature

MINIATURES: list[Miniature] = []


def miniature(source: str, *breaks: str, **claims: Any) -> Any:
    """Class decorator: list the cache under its name, with its docstring as the sentence."""

    def enlist(cache: type[Any]) -> type[Any]:
        name = "".join("_" + c.lower() if c.isupper() else c for c in cache.__name__).lstrip("_")
        sentence = " ".join((cache.__doc__ or "").split())
        profile = {"policies": ["lru"], **claims}
        MINIATURES.append(Miniature(name, sentence, source, frozenset(breaks), cache, profile))
        return cache

    return enlist
