"""Rules of chapter `replay`."""

from expertcache_spec.rules import Rule

_P = "expertcache_spec.replay:"

RULES = (
    Rule("XC-REPLAY-001", "MUST",
         "The same trace, policy, budget and settings give the same steps and counts on every platform and Python.",
         "Dictionary order, hash seeds and clocks are luck.",
         "Micro-Expert-Router@a8c30dc", _P + "replay"),
    Rule("XC-REPLAY-002", "MUST",
         "Every result names its replay mode, trace, policy, budget, settings, tie rule and, for offline policies, which optimum.",
         "Three different optima and seven Least-Stales share a name.",
         "simulators survey", _P + "Manifest"),
    Rule("XC-REPLAY-003", "MUST",
         "Sequential replay takes one selection at a time, repeats included, as classical simulators do, and is never reported as anything else.",
         "It inflates the misses of recency policies and can invert rankings.",
         "arXiv 2608.07911", "expertcache_spec.trace:sequential"),
    Rule("XC-REPLAY-004", "MUST",
         "Results are integers first; ratios are derived from them.",
         "A ratio rounded to four decimals cannot be compared.",
         "libCacheSim cachesim", _P + "Result"),
)  # fmt: skip
