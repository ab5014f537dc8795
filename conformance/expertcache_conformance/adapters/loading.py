"""From the text after `--impl` to an implementation."""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
from pathlib import Path
from typing import Any

import attrs

from expertcache_conformance.adapters.planning import OWN_LAYOUT, PLANNING
from expertcache_conformance.adapters.protocol import Config, InvalidProfile, Profile, parse_profile

GROUP = "expertcache.implementations"
"""Entry-point group: a package may register its implementation under a short name."""


class CannotLoad(ValueError):
    """The text after `--impl` leads to no implementation."""


@attrs.frozen
class Implementation:
    """A loaded implementation: how it was named, its profile, and the object with `open_cache`."""

    spelled: str
    profile: Profile
    target: Any

    def open(self, config: Config) -> Any:
        """A fresh cache."""
        return self.target.open_cache(config)


def load(spelled: str, folder: Path | None = None) -> Implementation:
    """The implementation named `module`, `module:attribute`, or by an entry point of `GROUP`.

    `folder` is looked in too, as `python -m` would: a file beside the terminal's prompt is found without an install.
    `log:PATH` is an event log. Raises `CannotLoad` with the reason and the cure.
    """
    if spelled.startswith("log:"):
        from expertcache_conformance.adapters.recorded import load_log

        return load_log(spelled, folder)
    module_name, _, attribute = spelled.partition(":")
    registered = [] if attribute else list(importlib.metadata.entry_points(group=GROUP, name=spelled))
    if registered:
        target = registered[0].load()
    else:
        target = _import(module_name, folder)
        for part in filter(None, attribute.split(".")):
            if not hasattr(target, part):
                raise CannotLoad(f"{module_name} has no attribute {attribute!r}")
            target = getattr(target, part)
    if not hasattr(target, "PROFILE"):
        raise CannotLoad(f"{spelled} does not offer PROFILE and open_cache(config); see the adapter protocol")
    try:
        profile = parse_profile(target.PROFILE)
    except InvalidProfile as error:
        raise CannotLoad(f"the profile of {spelled} is invalid: {error}") from error
    for method in _needed(profile):
        if not callable(getattr(target, method, None)):
            raise CannotLoad(f"{spelled} does not offer {method}, which its profile claims; see the adapter protocol")
    return Implementation(spelled, profile, target)


def _needed(profile: Profile) -> list[str]:
    """What the implementation itself must have, its caches aside."""
    methods = [method for name in profile.capabilities for method in PLANNING.get(name, ())]
    if OWN_LAYOUT not in profile.layouts:
        methods = [method for method in methods if method != "files"]
    return ["open_cache"] * bool(profile.policies) + methods


def look_in(folder: Path | None) -> None:
    """Let modules of the folder be imported, as `python -m` would."""
    here = str(folder or Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # last, and for good: an implementation may import its own neighbours late


def _import(name: str, folder: Path | None) -> Any:
    look_in(folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise CannotLoad(
                f"no module {name!r}; install it, run from the folder that holds it, or write module:attribute"
            ) from error
        raise CannotLoad(f"importing {name} failed: {error}") from error
    except Exception as error:
        raise CannotLoad(f"importing {name} failed: {type(error).__name__}: {error}") from error
