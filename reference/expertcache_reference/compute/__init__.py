"""Compute: experts on the bytes of their records, in numpy or MLX; read `records`, `serving`, `layer`, `backends`.

Rows are grouped by expert, experts are computed in whatever order their bytes arrive, and the results are combined in
slot order: the order of a row's experts in its event. So the sum is the same bits at every capacity, policy,
discipline, thread count and way of reading.
"""

from expertcache_reference.compute.backends import BACKENDS, Backend, MissingBackend, backend
from expertcache_reference.compute.layer import combine, mixture, rows_of
from expertcache_reference.compute.records import parts
from expertcache_reference.compute.serving import Resident, Serve, Served

__all__ = [
    "BACKENDS", "Backend", "MissingBackend", "Resident", "Serve", "Served", "backend", "combine", "mixture", "parts",
    "rows_of",
]  # fmt: skip
