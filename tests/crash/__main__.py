"""``python -m tests.crash``: the run of ``make test-crash``, two hundred kills of a server with a large store."""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from tests.crash.kills import Run
from tests.crash.writer import NAMESPACE

_MAX_RESTART = 5.0


def write_objects(path: Path, count: int) -> None:
    """Write manifests of a namespace and `count` pods that nothing changes; restarts have to read them."""
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"pod-{number}", "namespace": "still", "labels": {"app": f"app-{number % 50}"}},
            "spec": {"schedulerName": "nobody", "containers": [{"name": "c", "image": "pause:3.10"}]},
        }
        for number in range(count)
    ]
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [namespace, *pods]}))


def main() -> None:
    """Kill the server repeatedly, and print the statistics."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--objects", type=int, default=10_000, help="that are in the store from the start")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_objects(folder / "objects.json", options.objects)
        run = Run(folder, options.seed, [str(folder / "objects.json")], lambda text: print(text, flush=True))
        figures = run.kill_often(options.kills)
    print("\n".join(figures.lines()))
    assert max(figures.computed) < _MAX_RESTART, "a restart took too long"


if __name__ == "__main__":
    main()
