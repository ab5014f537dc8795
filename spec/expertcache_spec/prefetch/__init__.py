"""Prefetch: guessing what will be asked for, and reading it before it is.

A predictor names keys of later layers; tickets carry them through their life; a home holds the bytes. Read `settings`,
`predictors`, `gates`, `tickets`, `homes`, `driver`, `unstamped`.
"""

from expertcache_spec.prefetch.predictors import Predictor
from expertcache_spec.prefetch.registry import PREDICTORS, PredictorCard, predictor
from expertcache_spec.prefetch.settings import Prefetch
from expertcache_spec.prefetch.tickets import PrefetchCounts, Ticket, Tickets

__all__ = ["PREDICTORS", "Predictor", "PredictorCard", "Prefetch", "PrefetchCounts", "Ticket", "Tickets", "predictor"]
