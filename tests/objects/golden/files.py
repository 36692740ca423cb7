"""Read the golden files in this folder."""

import gzip
import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def read_golden(name: str) -> list[dict[str, Any]]:
    """Return the records of a golden file, one per line."""
    with gzip.open(HERE / f"{name}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]
