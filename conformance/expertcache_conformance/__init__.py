"""The conformance suite: how to tell whether another implementation keeps the rules of `expertcache_spec`.

    pytest conformance --impl mypkg              # from a checkout
    pytest --pyargs expertcache_conformance --impl mypkg

`adapters` is what an implementation offers, `program` what is asked of it, `judge` compares its answers with the
specification step by step and names the rule that broke, `scenarios` generates programs, `hunt` searches them and
shortens what it finds, `miniatures` are the suite's own test subjects.
"""

SUITE_VERSION = "0.1"
