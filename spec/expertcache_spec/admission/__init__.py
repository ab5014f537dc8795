"""Admission: which missing records are kept at all. An axis of its own, beside every eviction policy.

Eviction says who would leave, admission whether anybody has to. A record that is not admitted is read and served all
the same. Read `rules`, the admissions themselves, then `naming`.
"""

from expertcache_spec.admission.ages import Ages
from expertcache_spec.admission.naming import ADMISSIONS, AdmissionCard, admission, make
from expertcache_spec.admission.rules import Admission

__all__ = ["ADMISSIONS", "Admission", "AdmissionCard", "Ages", "admission", "make"]
