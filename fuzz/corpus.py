"""Inputs that are kept: one text file a target, an input a line, in base 64.

``python fuzz/corpus.py unpack TARGET FOLDER`` lays them out for libFuzzer; ``pack TARGET FOLDER`` keeps those
of a folder that ``-set_cover_merge=1`` left, the shortest first, as far as 36 KB and 450 lines go.
"""

import base64
import hashlib
import sys
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
MOST_BYTES, MOST_LINES = 36_000, 450


def main() -> None:
    """Pack or unpack, as the command line says."""
    action, target, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    kept = CORPUS / f"{target}.txt"
    if action == "unpack":
        for line in kept.read_text().split() if kept.exists() else []:
            data = base64.b64decode(line)
            (folder / hashlib.sha1(data, usedforsecurity=False).hexdigest()).write_bytes(data)
        return
    lines = {base64.b64encode(path.read_bytes()).decode() for path in folder.iterdir()}
    taken: list[str] = []
    for line in sorted(lines, key=lambda line: (len(line), line)):
        if line and len(taken) < MOST_LINES and sum(map(len, taken)) + len(line) < MOST_BYTES:
            taken.append(line)
    kept.write_text("".join(f"{line}\n" for line in taken))


if __name__ == "__main__":
    main()
