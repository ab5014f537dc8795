"""Rules of chapter `trace`: events, passes, traces."""

from expertcache_spec.rules import Rule

_T = "expertcache_spec.trace:"

RULES = (
    Rule("XC-TRACE-001", "MUST",
         "An event is the distinct experts that one layer asks for at once, in order of first appearance, rows in token order.",
         "The unit of a lookup is otherwise ambiguous: one public trace has 44,766 lookups or 39,526.",
         "BigMoeOnEdge; arXiv 2608.07911", _T + "Event"),
    Rule("XC-TRACE-002", "MUST",
         "A pass of a stream walks every routed layer once, in rising order, in one phase, and passes are numbered from 0 without a gap.",
         "Dropped, doubled or reordered rows change every result without a trace.",
         "vLLM and Megatron dumps surveyed", _T + "TraceChecker.feed"),
    Rule("XC-TRACE-003", "MUST",
         "Expert ids are whole numbers from 0 to experts - 1, at most top-k in a row, distinct within the row; padding such as -1 is an error.",
         "A sentinel taken as an id is a lookup that nobody made.",
         "ds4#896; SGLang, sgl-jax padding", _T + "TraceChecker.feed"),
    Rule("XC-TRACE-004", "MUST",
         "Weights and scores are finite and shaped like the rows, or absent.",
         "NaN passes every threshold test.",
         "BigMoeOnEdge@cd24c33", _T + "check_event"),
    Rule("XC-TRACE-005", "MUST",
         "A trace ends with a completed pass of every stream and says so; a truncated one is an error.",
         "An early end looks like a pass.",
         "CCF trace validation; best-effort capture tools", _T + "TraceChecker.finish"),
    Rule("XC-TRACE-006", "MUST",
         "Equal geometry and events have equal fingerprints, whatever file, format or compression they came from.",
         "Results are compared by the hash of what was replayed.",
         "expertcache", _T + "fingerprint"),
    Rule("XC-TRACE-007", "MUST",
         "Reading what was written, in either format, gives the same events, weights, scores and recordings.",
         "A converter that loses a column decides later what can be checked.",
         "expertcache", "expertcache_spec.traceformat:decode_event"),
    Rule("XC-TRACE-008", "MUST",
         "A malformed line is an error that names file, line and cure; unknown fields and other versions are errors.",
         "Tolerant readers turn dirt into results.",
         "moe-cache-lab; rivoli", "expertcache_spec.traceformat:decode_event"),
)  # fmt: skip
