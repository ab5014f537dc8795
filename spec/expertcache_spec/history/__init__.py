"""History: the event log that an engine writes, and the checker that holds all of it against the rules.

Read `schema`, `header`, `reading`, `verdict`, `script`, `books`, `following`, `selecting`, `working`, `checker`,
`recorder`, `writing`, `extract`.
"""

from expertcache_spec.history.checker import check, numbered
from expertcache_spec.history.extract import Decided, decisions
from expertcache_spec.history.header import Header, decode_log_header, encode_header
from expertcache_spec.history.reading import read_log
from expertcache_spec.history.recorder import Recorder
from expertcache_spec.history.schema import OPERATIONS, InvalidLog, json_schema
from expertcache_spec.history.verdict import Verdict
from expertcache_spec.history.writing import log_of

__all__ = [
    "OPERATIONS",
    "Decided",
    "Header",
    "InvalidLog",
    "Recorder",
    "Verdict",
    "check",
    "decisions",
    "decode_log_header",
    "encode_header",
    "json_schema",
    "log_of",
    "numbered",
    "read_log",
]
