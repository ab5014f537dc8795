"""Rules of chapter `pagecache`: the tier below the expert cache."""

from expertcache_spec.rules import Rule

_P = "expertcache_spec.pagecache:"

RULES = (
    Rule("XC-PAGE-001", "MUST",
         "The page cache is a tier of its own with a capacity in pages; its pages are not charged to the expert cache, nor the expert cache's records to it.",
         "The same bytes held in both tiers look like twice the memory for no hit.",
         "colibri#1321", _P + "PageCache"),
    Rule("XC-PAGE-002", "MUST",
         "Application bytes and physical bytes are counted apart: a read asks for its length, and takes from the device the whole pages that are not held.",
         "94.67 GiB in 4.97 s is faster than the device: the reads were warm.",
         "field report, TARGETS 6; ds4#437", _P + "PageCache.read"),
    Rule("XC-PAGE-003", "MUST",
         "A run is called cold only where physical bytes were measured and are no fewer than the application's, and memory was looked at before and held none of those.",
         "Cold-labelled runs were warm. Whole pages and what is read ahead make up for bytes that were in memory.",
         "Crow; ds4#437", _P + "temperature"),
    Rule("XC-PAGE-004", "MUST",
         "A read past the cache neither evicts pages nor refreshes them, and is served by those that are held.",
         "F_NOCACHE neither evicts nor proves anything.",
         "mlx-lm #1588; fio#48, libuv#1600", _P + "PageCache.read"),
    Rule("XC-PAGE-005", "MUST",
         "Advice is never a read: it counts no application byte and changes no answer.",
         "Advised and then read, each byte counted twice.",
         "ds4#533, erigon#23867", _P + "PageCache.advise"),
    Rule("XC-PAGE-006", "MUST",
         "The page cache changes no hit, miss or victim of the expert cache, and no application byte.",
         "Hit rate is not throughput: a larger expert cache can hit more and run slower.",
         "ds4#810, mlx-lm #1438", _P + "traffic"),
)  # fmt: skip
