"""Record sampled cases: run random clusters through the real scheduler, and write the answers.

    .venv/bin/python scripts/record_sampled.py oracle/BIN conformance/sampled/nodes.jsonl.gz

Each line is ``{"case": ..., "want": ...}``. ``follow`` in a case names the node that the real scheduler chose among the
best.
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parents[1]
SEED, COUNT = 36, 48


def main() -> None:
    """Write the file."""
    sys.path.insert(0, str(ROOT))
    from fuzz.oracle import Oracle
    from fuzz.sampling import random_sampled_case
    from fuzz.trial import follow_hosts

    oracle = Oracle(Path(sys.argv[1]))
    cases = [random_sampled_case(SEED, number) for number in range(COUNT)]
    lines = []
    for number, (case, want) in enumerate(zip(cases, oracle.answers(cases), strict=True)):
        if want["error"] is not None:
            continue
        name = f"sampled/s{number:04d}"
        followed = {**follow_hosts(case, want), "id": name}
        lines.append(msgspec.json.encode({"case": followed, "want": {**want, "id": name}}) + b"\n")
    # Without a timestamp, the same answers give the same file.
    Path(sys.argv[2]).write_bytes(gzip.compress(b"".join(lines), 9, mtime=0))
    print(f"{len(lines)} cases")


if __name__ == "__main__":
    main()
