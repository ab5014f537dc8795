"""Layouts: where a record lies in files, and how many reads it takes to fetch it.

A layout is a map from a record to extents of files. Layouts differ in reads, never in bytes. Read `extents`, `placing`,
`kinds`, `reads`, `files`.
"""

from expertcache_spec.layout.extents import Extent, pieces, window
from expertcache_spec.layout.files import FoundFile, check_files, fingerprint
from expertcache_spec.layout.kinds import (
    bundled_rows,
    flat_blobs,
    overlay,
    packed_layers,
    record_blocks,
    resident_prefix,
    stacked_tensors,
    with_side_table,
)
from expertcache_spec.layout.placing import Layout, Shape, SideTable, broken_laws, gather, written
from expertcache_spec.layout.reads import Read, ReadCost, coalesce, reads_of, wasted

__all__ = [
    "Extent",
    "FoundFile",
    "Layout",
    "Read",
    "ReadCost",
    "Shape",
    "SideTable",
    "broken_laws",
    "bundled_rows",
    "check_files",
    "coalesce",
    "fingerprint",
    "flat_blobs",
    "gather",
    "overlay",
    "packed_layers",
    "pieces",
    "reads_of",
    "record_blocks",
    "resident_prefix",
    "stacked_tensors",
    "wasted",
    "window",
    "with_side_table",
    "written",
]
