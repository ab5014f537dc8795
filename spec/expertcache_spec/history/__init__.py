"""History: the event log that an engine writes, and the checker that holds all of it against the rules.

Read `schema`, `reading`, `verdict`, `script`, `books`, `selecting`, `working`, `checker`, `writing`, `extract`.
"""

from expertcache_spec.history.checker import check, numbered
from expertcache_spec.history.extract import Decided, decisions
from expertcache_spec.history.reading import Header, encode_header, read_log
from expertcache_spec.history.schema import OPERATIONS, InvalidLog, json_schema
from expertcache_spec.history.verdict import Verdict
from expertcache_spec.history.writing import Recorder, log_of

__all__ = [
    "OPERATIONS",
    "Decided",
    "Header",
    "InvalidLog",
    "Recorder",
    "Verdict",
    "check",
    "decisions",
    "encode_header",
    "json_schema",
    "log_of",
    "numbered",
    "read_log",
]
