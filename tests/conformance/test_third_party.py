"""Caches that other people wrote: they pass, or fail for the right reason."""

import sys
from importlib.util import find_spec

import pytest

from expertcache_conformance.adapters import load
from expertcache_conformance.rundown import Rundown, examine

from .suite import CACHES

needs_libcachesim = pytest.mark.skipif(find_spec("libcachesim") is None, reason="libcachesim is not installed")


@pytest.fixture(autouse=True)
def caches_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(CACHES)])


def run(name: str, *, real_trace: bool = False) -> Rundown:
    found = examine(load(name), only=lambda case: real_trace or "real_trace" not in case.name)
    assert not found.crashed
    return found


def test_an_lru_on_ordered_dict_conforms() -> None:
    found = run("ordered", real_trace=True)
    assert not found.broken
    assert "test_residency::test_an_event_is_judged_and_protected_as_a_whole" in found.passed


def test_cachetools_lru_conforms_as_a_sequential_cache() -> None:
    found = run("on_cachetools", real_trace=True)
    assert not found.broken
    assert "test_residency::test_an_event_is_judged_and_protected_as_a_whole" in found.not_claimed


def test_cachetools_lru_sold_as_an_event_cache_evicts_its_own_event() -> None:
    assert set(run("on_cachetools:as_event_cache").broken) == {"XC-RES-005", "XC-RES-007", "XC-RES-012"}


@needs_libcachesim
@pytest.mark.parametrize(
    "policy", ["lfu", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("lru", "fifo"))]
)
def test_libcachesim_conforms_one_key_at_a_time(policy: str) -> None:
    assert not run(f"on_libcachesim:{policy}").broken


@needs_libcachesim
def test_libcachesims_lfu_sold_as_one_that_keeps_its_counts_is_named() -> None:
    assert set(run("on_libcachesim:lfu_sold_as_kept").broken) == {"XC-EVICT-031"}
