"""Stores: a model's files, as extents of records; `open_store` opens them, `pack` converts between their formats.

Read `store`, `opening`, `folders`, `manifest`, `contents`; then `plans`, `work`, `disk`, `packing`.
"""

from expertcache_reference.stores.contents import verify
from expertcache_reference.stores.opening import open_store
from expertcache_reference.stores.packing import pack
from expertcache_reference.stores.store import KINDS, FileStore, Model, Part, Store

__all__ = ["KINDS", "FileStore", "Model", "Part", "Store", "open_store", "pack", "verify"]
