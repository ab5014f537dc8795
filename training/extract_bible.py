"""The narrative books of the King James Bible as plain prose, from the Debian packages bible-kjv and bible-kjv-text.

    python training/extract_bible.py PROGRAM FOLDER training/corpora/kjv_narrative.txt.xz

PROGRAM is the `bible` of bible-kjv, FOLDER holds `bible.data` of bible-kjv-text (4.38 was used). Run once; the result
is in the repository. A chapter is a heading and one paragraph, without verse numbers, wrapped at 72 columns.
"""

from __future__ import annotations

import lzma
import re
import subprocess
import sys
import textwrap
from itertools import groupby
from pathlib import Path

BOOKS = (
    "Ge", "Exo", "Josh", "Jdgs", "Ruth", "1Sm", "2Sm", "1Ki", "2Ki", "Ezra", "Neh", "Est", "Jonah",
    "Mat", "Mark", "Luke", "John", "Acts",
)  # fmt: skip
"""The books that tell a story, as the program abbreviates them; no law, genealogy, poetry, prophecy or letters."""

_VERSE = re.compile(r"(\d?[A-Za-z]+)(\d+):(\d+) (.*)")


def narrative(program: str, folder: str) -> str:
    """The chapters of `BOOKS`, in the order of the Bible."""
    command = [program, "-f", "-p", folder, "Gen1:1-Rev22:21"]
    printed = subprocess.run(command, check=True, capture_output=True, encoding="ascii").stdout
    verses = [found.groups() for line in printed.splitlines() if (found := _VERSE.fullmatch(line))]
    chapters = []
    for (book, chapter), group in groupby(verses, key=lambda verse: verse[:2]):
        if book in BOOKS:
            text = " ".join(verse[3].strip() for verse in group)
            chapters.append(f"{book} {chapter}\n\n{textwrap.fill(text, 72)}\n")
    if {chapter.split()[0] for chapter in chapters} != set(BOOKS):
        raise SystemExit("books are missing: is FOLDER that of bible-kjv-text?")
    return "\n".join(chapters)


if __name__ == "__main__":
    program, folder, target = sys.argv[1:]
    Path(target).write_bytes(lzma.compress(narrative(program, folder).encode(), preset=9 | lzma.PRESET_EXTREME))
