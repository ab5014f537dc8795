"""The residency machine: which records are resident, reserved, leased or pinned, and how that may change.

Each transition happens whole, or raises a typed error and changes nothing. The machine owns room and protection; a
policy (chapter `eviction`) owns the order in which residents leave. Read `settings`, `room`, `ledger`, `state`,
`selecting`, `machine`, `audit`.
"""

from expertcache_spec.residency.audit import audit
from expertcache_spec.residency.machine import Ended, Progress, Residency, Seeded
from expertcache_spec.residency.settings import SETTINGS, Selection, Settings

__all__ = ["SETTINGS", "Ended", "Progress", "Residency", "Seeded", "Selection", "Settings", "audit"]
