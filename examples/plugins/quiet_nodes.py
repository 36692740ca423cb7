"""A custom plugin in twenty lines: rendering stays off nodes that serve the shop, and everybody prefers quiet nodes.

bayplan simulate PATH... --plugin examples/plugins/quiet_nodes.py:QuietNodes=2
"""

from bayplan import NodeInfo, PerNodePlugin
from bayplan.objects.pod import Pod


class QuietNodes(PerNodePlugin):
    """Keeps pods labelled app=render away from pods labelled tier=front; scores nodes by how few pods they run."""

    def filter_node(self, pod: Pod, node: NodeInfo) -> str | None:
        if pod.metadata.labels.get("app") != "render":
            return None
        neighbours = sum(other.metadata.labels.get("tier") == "front" for other in node.pods)
        return f"node(s) serve {neighbours} front pods" if neighbours else None

    def score_node(self, pod: Pod, node: NodeInfo) -> int:
        return max(0, 100 - 5 * len(node.pods))
