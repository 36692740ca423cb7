"""For plugin authors and tests: builders of objects, and the conformance kit for plugins."""

from bayplan.testing.builders import NodeBuilder, PodBuilder, make_node, make_pod
from bayplan.testing.check_plugin import check_plugin
from bayplan.testing.plugin_subject import PluginFault

__all__ = ["NodeBuilder", "PluginFault", "PodBuilder", "check_plugin", "make_node", "make_pod"]
