"""For plugin authors and tests: builders of nodes and pods."""

from bayplan.testing.builders import NodeBuilder, PodBuilder, make_node, make_pod

__all__ = ["NodeBuilder", "PodBuilder", "make_node", "make_pod"]
