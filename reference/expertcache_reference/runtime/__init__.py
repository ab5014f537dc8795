"""The runtime: the specification's machine deciding, and real bytes, real threads and real waiting around it.

Read `records`, `journal`, `line`, `core`, `batches`, `wave`, `work`, `contents`, `speculation`, `opening`, `runtime`,
`ahead`, `report`.
"""

from expertcache_reference.runtime.ahead import Ahead
from expertcache_reference.runtime.batches import Batch
from expertcache_reference.runtime.errors import RuntimeClosed
from expertcache_reference.runtime.journal import Journal
from expertcache_reference.runtime.opening import Source
from expertcache_reference.runtime.report import Report
from expertcache_reference.runtime.runtime import Runtime
from expertcache_reference.runtime.work import Work

__all__ = ["Ahead", "Batch", "Journal", "Report", "Runtime", "RuntimeClosed", "Source", "Work"]
