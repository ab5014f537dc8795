"""The executable specification of expert caches for streamed mixture-of-experts models.

What is true: pure models, no I/O, no threads, no clock, no randomness. Read the chapters in this order:
`model`, `trace`, `residency`, `eviction`, `metrics`, `replay`, `engines`. Every normative sentence is a rule in
`rules`; the contracts, the conformance suite, the reports and the book carry its id.
"""

SPEC_VERSION = "0.1"
"""Version of the specification's text and behaviour (not of the Python package)."""

__all__ = ["SPEC_VERSION"]
