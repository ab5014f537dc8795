"""The residency machine: which records are resident, reserved, leased or pinned, and how that may change.

Each transition happens whole, or raises a typed error and changes nothing. The machine owns room and protection; a
policy (chapter `eviction`) owns the order in which residents leave. Read `settings`, `room`, `ledger`, `state`,
`selecting`, `serving`, `reading`, `machine`, `audit`.
"""

from expertcache_spec.residency.audit import audit
from expertcache_spec.residency.machine import Residency, Seeded
from expertcache_spec.residency.reading import Ended, Progress
from expertcache_spec.residency.settings import SETTINGS, Selection, Settings, Step

__all__ = ["SETTINGS", "Ended", "Progress", "Residency", "Seeded", "Selection", "Settings", "Step", "audit"]
