"""Rules about the conversation between the suite and an implementation."""

from expertcache_spec.rules import Rule

_C = "expertcache_spec.rules:Rule"

RULES = (
    Rule("XC-CONF-001", "MUST",
         "An answer is well formed: it names keys of the event and of the model, in the adapter protocol's types.",
         "A suite that guesses at malformed answers judges its own guesses.",
         "bowtie", _C),
    Rule("XC-CONF-002", "MUST",
         "The same operations from a fresh cache give the same answers.",
         "A verdict about an implementation that is not repeatable is about luck.",
         "array-api-tests#300", _C),
    Rule("XC-CONF-003", "MUST",
         "What a profile claims is offered: a claimed policy, setting or capability is never refused.",
         "A flag that is parsed and ignored, or accepted and then refused, looks like support.",
         "ds4#639, colibri#1443", _C),
)  # fmt: skip
