"""Laws of the small pure functions, for CrossHair: the first assertion is the precondition, the others must follow.

`crosshair check --analysis_kind=asserts tests/spec/crosshair_laws.py` searches for numbers that break one.
"""

from __future__ import annotations

from expertcache_spec.engines_ds4 import priority
from expertcache_spec.fanout import chunk_count, chunk_plan
from expertcache_spec.model import format_size, parse_size, quotas


def quotas_add_up_and_differ_by_one(capacity: int, layers: int) -> None:
    assert 0 <= capacity <= 1000 and 1 <= layers <= 40  # noqa: PT018  one precondition
    found = quotas(capacity, layers)
    assert len(found) == layers
    assert sum(found) == capacity
    assert max(found) - min(found) <= 1
    assert found == sorted(found, reverse=True)


def chunks_cover_a_record_once_in_order(size: int, wanted: int, page: int) -> None:
    assert 0 <= size <= 200 and 0 <= wanted <= 9 and 1 <= page <= 8  # noqa: PT018  one precondition
    plan = chunk_plan(size, wanted, page)
    assert len(plan) == chunk_count(size, wanted, page)
    end = 0
    for chunk in plan:
        assert chunk.offset == end
        assert chunk.length > 0 or size == 0
        end += chunk.length
    assert end == size


def a_size_reads_back(number: int) -> None:
    assert 0 <= number <= 10**6
    assert parse_size(f"{number} MiB").bytes == number << 20
    assert format_size(number << 20, "MiB").startswith(str(number))


def scaled_priorities_lie_between_1_and_32(remaining: int, total: int) -> None:
    assert 1 <= remaining <= total <= 500
    assert 1 <= priority("scaled", remaining, total) <= 32
