"""Rules of chapter `engines`."""

from expertcache_spec.rules import Rule

RULES = (
    Rule("XC-ENGINE-001", "MUST",
         "The BigMoeOnEdge profile reproduces the residency and the bytes of every row that the engine recorded.",
         "A profile is a claim about a real engine; evicting key by key, no promotion on repeats, hits first and FIFO each differ in some rows.",
         "BigMoeOnEdge 2d4f2b1, route traces of Qwen3-30B-A3B and Gemma-4-26B-A4B", "expertcache_spec.engines:BIGMOE_ON_EDGE"),
    Rule("XC-ENGINE-002", "MUST",
         "A profile states what it reproduces, from which public evidence, and what is only read from code.",
         "", "expertcache", "expertcache_spec.engines:Profile"),
)  # fmt: skip
