"""What a disk delivers, cold and warm, and the evidence for calling it so.

Read `places` (which bytes of a file are read), `evidence` (what is known of where they came from), `sweep` (the
measurement), `summary` (what may be said), `scratch` (a file to measure on).
"""

from expertcache_reference.disk.evidence import CONDITIONS, Evidence
from expertcache_reference.disk.places import CannotMeasure
from expertcache_reference.disk.scratch import scratch
from expertcache_reference.disk.summary import Claim, Line, read_claim, summary, verdict
from expertcache_reference.disk.sweep import Plan, Point, sweep

__all__ = [
    "CONDITIONS", "CannotMeasure", "Claim", "Evidence", "Line", "Plan", "Point", "read_claim", "scratch", "summary",
    "sweep", "verdict",
]  # fmt: skip
