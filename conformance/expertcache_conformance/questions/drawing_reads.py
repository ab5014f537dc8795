"""Questions about reads and files, drawn from small layouts: every one that can go wrong in its own way."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product

from expertcache_conformance.adapters.planning import Table
from expertcache_conformance.questions.drawing import layout_questions
from expertcache_conformance.questions.layouts import LayoutQuestion
from expertcache_conformance.questions.openings import STATES, FilesQuestion, TableQuestion, declared_by
from expertcache_conformance.questions.reads import ReadsQuestion, WindowQuestion

KINDS = ("packed-layers", "stacked-tensors", "record-blocks", "bundled-rows", "flat-blobs")
GRAINS = (1, 4, 512, 4096, 16384, 65536)


def _small(kind: str) -> list[LayoutQuestion]:
    """The small layouts of the kind, without the one of real proportions."""
    return list(layout_questions(kind))[:-1]


def reads_questions() -> Iterator[ReadsQuestion]:
    """A record, neighbours, all of a layer and a few by chance, in the order of numbers and against it."""
    for kind in KINDS:
        for where in _small(kind)[::3]:
            keys = where.shape.keys()
            some = random.Random(str(where)).sample(keys, min(3, len(keys)))
            for resident in range(len(where.parts) + 1):
                for chosen in (keys[:1], keys[:2], keys[-2:][::-1], keys[: where.experts], some, keys):
                    yield ReadsQuestion(where, tuple(chosen), resident)


def window_questions() -> Iterator[WindowQuestion]:
    """Extents around every edge of a grain, in a file that ends with them, soon after, or much later."""
    for grain, begin, before, length in product(GRAINS, (0, 1, 5), (0, 1, 5), (1, 4, 4096, 20000)):
        offset = max(0, begin * grain - before)
        for behind in (0, 1, grain - 1, 3 * grain):
            yield WindowQuestion(offset, length, grain, offset + length + behind)
    yield WindowQuestion(5000, 20000, 16384, 10**9)  # BigMoeOnEdge#117


def files_questions() -> Iterator[FilesQuestion]:
    """All files fine, and each of them in each other state."""
    for kind in KINDS:
        for where in _small(kind)[::3]:
            count = len(declared_by(where).files)
            fine = ("fine",) * count
            yield FilesQuestion(where, fine)
            for n, state in product(range(count), STATES[1:]):
                yield FilesQuestion(where, (*fine[:n], state, *fine[n + 1 :]))


def table_questions() -> Iterator[TableQuestion]:
    """Tables of a few rows, on pages that the weights fill and that they do not."""
    for kind in KINDS:
        for where in _small(kind)[::3]:
            for rows, row_bytes, page in product((1, 3), (5, 16), (1, 16, 4096)):
                yield TableQuestion(where, Table(rows, row_bytes, page))
