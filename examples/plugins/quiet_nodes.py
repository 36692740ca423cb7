"""A custom plugin in twenty lines: rendering avoids nodes that serve the shop, and all pods prefer quiet nodes.

bayplan simulate PATH... --plugin examples/plugins/quiet_nodes.py:QuietNodes=2
"""

from bayplan import NodeInfo, PerNodePlugin
from bayplan.objects.pod import Pod


class QuietNodes(PerNodePlugin):
    """Rejects nodes with pods labelled tier=front for pods labelled app=render; nodes with fewer pods score higher."""

    def filter_node(self, pod: Pod, node: NodeInfo) -> str | None:
        if pod.metadata.labels.get("app") != "render":
            return None
        neighbours = sum(other.metadata.labels.get("tier") == "front" for other in node.pods)
        return f"node(s) serve {neighbours} front pods" if neighbours else None

    def score_node(self, pod: Pod, node: NodeInfo) -> int:
        return max(0, 100 - 5 * len(node.pods))
