"""Rules of chapter `fanout`: one record read in several chunks."""

from expertcache_spec.rules import Rule

_F = "expertcache_spec.fanout:"
_SPLIT = "Flash-MoE --cache-io-split, two forks"

RULES = (
    Rule("XC-FANOUT-001", "MUST",
         "A chunk plan covers its record exactly once and in order, and no chunk is empty unless the record is.",
         "A tail dropped by rounding is garbage in the last rows of a matrix.",
         "Flash-MoE forks, tiered records", _F + "chunk_plan"),
    Rule("XC-FANOUT-002", "MUST",
         "The number of chunks asked for is clamped to 1..8 and to the record's pages; it is one where the size is 0 or no multiple of the page.",
         "More chunks than pages make empty reads.",
         _SPLIT, _F + "chunk_count"),
    Rule("XC-FANOUT-003", "MUST",
         "Every chunk of a plan of several is a whole number of pages, and the first chunks take the remainder, one page each.",
         "A chunk that starts inside a page reads that page twice.",
         _SPLIT, _F + "chunk_plan"),
    Rule("XC-FANOUT-004", "MUST",
         "Number and lengths of the chunks come from the size of the record that is read, not from that of another record.",
         "A count from the uniform size with pages from the record's own dropped tail bytes and made empty chunks.",
         "Flash-MoE forks, tiered records", _F + "chunk_plan"),
    Rule("XC-FANOUT-005", "MUST",
         "A record read in chunks is whole when the chunks follow each other, each has delivered its own length, and the lengths sum to the record's size.",
         "Comparing each chunk with its own size alone lets a dropped tail pass.",
         "Flash-MoE, Alexintosh fork", _F + "is_whole"),
)  # fmt: skip
