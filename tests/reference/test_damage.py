"""Whatever happens to a file's bytes, it is read as a trace or refused with place and cure; nothing else escapes."""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path
from random import Random

import pytest

from expertcache_reference.traces import open_trace, write_trace
from expertcache_spec.errors import InvalidTrace

from .files import CSV, dumped, jsonl_records, put, request

ALPHABET = b'0123456789-+.,"[]{}:eE\n\0\xfftn '


def damaged(data: bytes, random: Random) -> bytes:
    """A few bytes flipped, replaced, cut out, put in or copied elsewhere."""
    body = bytearray(data)
    for _ in range(random.choice([1, 1, 2, 5, 20])):
        at, other, length = random.randrange(len(body)), random.randrange(len(body)), random.choice([1, 3, 50])
        kind = random.randrange(5)
        if kind == 0:
            body[at] ^= 1 << random.randrange(8)
        elif kind == 1:
            body[at] = random.choice(ALPHABET)
        elif kind == 2:
            del body[at : at + length]
        elif kind == 3:
            body[at:at] = bytes(random.choice(ALPHABET) for _ in range(length))
        else:
            body[at:at] = body[other : other + length]
        body = body or bytearray(b" ")
    return bytes(body)


@pytest.mark.rule("XC-TRACE-008")
@pytest.mark.parametrize("form", ["bigmoe-on-edge", "jsonl", "gpt-oss", "npz"])
def test_a_damaged_file_is_read_or_refused_with_place_and_cure(form: str, tmp_path: Path) -> None:
    sound = put(tmp_path / "sound.csv", CSV)
    write_trace(open_trace(sound), tmp_path / "sound.npz")
    data = {
        "bigmoe-on-edge": [CSV.encode(), gzip.compress(CSV.encode(), mtime=0)],
        "jsonl": [dumped(jsonl_records()).encode()],
        "gpt-oss": [dumped([request("a", 1)]).encode()],
        "npz": [(tmp_path / "sound.npz").read_bytes()],
    }[form]
    random, path, refused = Random(form), tmp_path / "t", 0
    for _ in range(400):
        path.write_bytes(damaged(random.choice(data), random))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                open_trace(path, format=random.choice(["auto", form]))
        except InvalidTrace as error:
            refused += 1
            place, cure = error.where, error.cure
        else:
            continue
        assert place.startswith(str(path))
        assert cure
    assert refused > 200
