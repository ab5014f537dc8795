"""Rules of the policies of engines and papers."""

from expertcache_spec.rules import Rule

_P = "expertcache_spec.eviction.engines."
_H = _P + "route_hotness:"
_C = _P + "clock:TokenClock."
_D = "expertcache_spec.engines_ds4:"

RULES: tuple[Rule, ...] = (
    Rule("XC-EVICT-180", "MUST",
         "Route hotness evicts the least hot key, of equally hot ones the least recently touched.",
         "Asked whether hotness before recency is deliberate, the engine scaled its seeds down and kept the order.",
         "ds4 2.1; ds4#636", _H + "Declared.rank"),
    Rule("XC-EVICT-181", "MUST",
         "Under route hotness every selection adds one to its key, resident or not, repeats inside an event included; the hotness of an evicted key is kept.",
         "Counting hits alone starved experts that were chosen often and evicted before a second hit.",
         "ds4 2.6; ds4 3d65923c", _H + "Hotness.note"),
    Rule("XC-EVICT-182", "MUST",
         "Hotness is halved, rounding down, every sixteenth token (halve_every), before the token's own selections are counted; a token is counted once, at one layer.",
         "Counted at a fixed layer, the clock stood still for a model whose first routed layer was another.",
         "ds4 2.7; ds4 section 9, item 16", _C + "due"),
    Rule("XC-EVICT-183", "MUST",
         "Hotness stops at its ceiling and never wraps.",
         "A wrapped counter makes the hottest expert the first victim.",
         "ds4 2.6", _H + "Hotness.add"),
    Rule("XC-EVICT-184", "MUST",
         "A new conversation zeroes all hotness before anything of it is counted or seeded, and leaves residents, recency and the count of tokens alone; a continued one zeroes nothing.",
         "The hotness of the last prompt kept dominating the next.",
         "ds4 2.8; ds4 8edc3c7d", _C + "begins_anew"),
    Rule("XC-EVICT-185", "MUST",
         "A seed adds its priority to the hotness of its key, at least one and each time, resident or not; it pins nothing.",
         "Priorities of list rank behaved nearly like pins for 200 tokens.",
         "ds4 3.4; ds4#636", _H + "Hotness.seed"),
    Rule("XC-EVICT-186", "MUST",
         "A prompt adds the frequency of each of its experts to the hotness and moves no clock.",
         "",
         "ds4 2.6, 4.8, section 11", _C + "tick"),
    Rule("XC-EVICT-187", "MUST",
         "A key that nothing asks for loses a hotness of h within halve_every x (floor(log2 h) + 1) tokens: 96 for 32, 208 for 4096.",
         "A seeded but cold record must become evictable after a bounded time.",
         "ds4 3.4; ds4#636", _H + "Hotness.halve"),
)  # fmt: skip
