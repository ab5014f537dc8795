"""What an implementation offers, and how the suite reaches it."""

from expertcache_conformance.adapters.loading import CannotLoad, Implementation, load
from expertcache_conformance.adapters.own import PolicyAlone, load_policy
from expertcache_conformance.adapters.protocol import CAPABILITIES, Config, InvalidProfile, Profile, parse_profile

__all__ = [
    "CAPABILITIES",
    "CannotLoad",
    "Config",
    "Implementation",
    "InvalidProfile",
    "PolicyAlone",
    "Profile",
    "load",
    "load_policy",
    "parse_profile",
]
