"""Rules of chapter `model`: keys, records, budgets."""

from expertcache_spec.rules import Rule

_M = "expertcache_spec.model:"

RULES = (
    Rule("XC-MODEL-001", "MUST",
         "A key is the pair (layer, expert); equal expert numbers of different layers are different keys.",
         "Narrowing or merging ids aliases records: one expert's bytes are computed as another's.",
         "bam#39; every engine surveyed", _M + "Key"),
    Rule("XC-MODEL-002", "MUST",
         "A record holds everything that one key needs and is admitted, evicted and published whole or not at all.",
         "A part left from the previous tenant of a slot computes silently wrong weights.",
         "GiorgioOppo/ds4@581441ca; erigon#22120", "expertcache_spec.residency.machine:Residency.complete"),
    Rule("XC-MODEL-003", "MUST",
         "When a budget states both slots and bytes, both hold: the tighter wins.",
         "Users state a record count and a memory ceiling, and expect neither to be exceeded.",
         "mlx-lm #1588", _M + "Budget"),
    Rule("XC-MODEL-004", "MUST",
         "Each record is charged its own size; where sizes are unknown a byte budget is an error.",
         "A count times a nominal size overshoots on mixed quantisation, or halves the cache at the widest size.",
         "ds4#647, colibri#856", _M + "Geometry.size"),
    Rule("XC-MODEL-005", "MUST",
         "A size is a number and a unit: kB, MB, GB, TB are powers of 1000, KiB, MiB, GiB, TiB powers of 1024; a bare number is refused.",
         "A 20 GB cap announced as 21.47 GiB has mixed label and base; engines read a bare number as slots, bytes or GiB.",
         "ds4#802", _M + "parse_size"),
    Rule("XC-MODEL-006", "MUST",
         "Under scope layer a capacity of c over L routed layers gives every layer c // L, and one more to the first c mod L layers.",
         "Some remainder rule is needed for two replays to agree.",
         "arXiv 2608.07911", _M + "quotas"),
    Rule("XC-MODEL-007", "SHOULD",
         "A budget below one token cycle under scope global, or a quota below top-k under scope layer, is warned about loudly.",
         "Layers are visited cyclically, so a recency policy then hits next to nothing on decode, and exactly 0 one event further down (XC-EVICT-004).",
         "BigMoeOnEdge#88, #167; ds4#725", "expertcache_spec.replay:warnings_for"),
)  # fmt: skip
