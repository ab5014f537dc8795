"""Questions to a planner: what is asked, what is right, and the smallest question that is answered wrongly.

`base` asks, judges and shortens; `chunks`, `layouts`, `reads`, `openings` and `schedules` know the kinds of questions.
"""

from expertcache_conformance.questions.base import Finding, Question, answered, shorten
from expertcache_conformance.questions.chunks import ChunkQuestion
from expertcache_conformance.questions.decoding import decode_question
from expertcache_conformance.questions.layouts import LayoutQuestion
from expertcache_conformance.questions.openings import FilesQuestion, TableQuestion
from expertcache_conformance.questions.reads import ReadsQuestion, WindowQuestion
from expertcache_conformance.questions.schedules import ScheduleQuestion

__all__ = [
    "ChunkQuestion",
    "FilesQuestion",
    "Finding",
    "LayoutQuestion",
    "Question",
    "ReadsQuestion",
    "ScheduleQuestion",
    "TableQuestion",
    "WindowQuestion",
    "answered",
    "decode_question",
    "shorten",
]
