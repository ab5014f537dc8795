"""Rules of chapter `content`: the bytes that an event computes with."""

from expertcache_spec.rules import Rule

_C = "expertcache_spec.content:"

RULES = (
    Rule("XC-BYTES-001", "MUST",
         "What an event computes with is its key's own record, whole, kept or not: for a hit from the selection, for a miss from the end of the record's read, until the event's lease ends.",
         "A slot refilled while a queued step reads it, or published before its last chunk, gives plausible numbers that depend on the capacity.",
         "ds4#384, bvi#3", _C + "computable"),
    Rule("XC-BYTES-002", "MUST",
         "Nothing of a failed read is ever computed with: every byte of a record comes from a read of it that has ended well.",
         "A return value that nobody looks at leaves in the slot what was there before.",
         "bvi#3, colibri#78", _C + "computable"),
    Rule("XC-BYTES-003", "MUST",
         "After a rebind to another model every byte is that model's.",
         "Keys are the same numbers in every model, so what was not dropped looks like a hit.",
         "llama.cpp#23170", _C + "pattern"),
)  # fmt: skip
