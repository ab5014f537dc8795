"""What an implementation offers, and how the suite reaches it."""

from expertcache_conformance.adapters.loading import CannotLoad, Implementation, load
from expertcache_conformance.adapters.protocol import CAPABILITIES, Config, InvalidProfile, Profile, parse_profile

__all__ = [
    "CAPABILITIES",
    "CannotLoad",
    "Config",
    "Implementation",
    "InvalidProfile",
    "Profile",
    "load",
    "parse_profile",
]
