"""Print the files of the package that one recorded scheduling cycle runs through, in the order of their first call."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

import bayplan
from bayplan.engine.assemble import assemble_scheduler
from bayplan.framework.configuration.loading import default_configuration
from bayplan.framework.feature_gates import FeatureGates
from bayplan.plugins.registry import in_tree_registry
from bayplan.testing.builders import make_node, make_pod

PACKAGE = Path(bayplan.__file__).parent
NODES = 150
"""The number of nodes, large enough for the search for feasible nodes to end early."""


def main() -> None:
    """Run several scheduling cycles and trace one of them."""
    scheduler = assemble_scheduler(default_configuration(), in_tree_registry(), feature_gates=FeatureGates())
    for number in range(NODES):
        scheduler.handle(None, make_node(f"n{number}").capacity(cpu="4", memory="8Gi", pods="10").obj(), 0)
    for number in range(5):
        scheduler.handle(None, make_pod(f"p{number}").req(cpu="1").obj(), 0)
    for _ in range(3):
        scheduler.schedule_one(0)
    files: dict[str, None] = {}

    def note(frame: FrameType, event: str, argument: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            files[path.relative_to(PACKAGE).as_posix()] = None
        if event == "return" and path.name == "records.py":
            sys.setprofile(None)

    sys.setprofile(note)
    scheduler.schedule_one(0)
    sys.setprofile(None)
    print("\n".join(files))


if __name__ == "__main__":
    main()
