"""Clusters of users for `check_plugin`: they may leave out what manifests may leave out."""

from __future__ import annotations

from bayplan.framework.node_info import NodeInfo
from bayplan.framework.per_node_plugin import PerNodePlugin
from bayplan.objects.pod import Pod
from bayplan.testing.plugin_kit import check_plugin
from bayplan.testing.sample_clusters import SampleCluster


class OnlyRed(PerNodePlugin):
    """Accepts nodes with the label color=red."""

    def filter_node(self, pod: Pod, node: NodeInfo) -> str | None:
        return None if node.labels.get("color") == "red" else "node(s) were not red"


def test_objects_may_lack_labels_annotations_and_status() -> None:
    nodes = tuple(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        for name in ("gke-prod-pool-1a2b3c4d-x9z8", "aks-nodepool1-12345678-vmss00000a")
    )
    pod, newcomer = (
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"containers": [{"name": "c", "image": "app:v1"}]},
        }
        for name in ("p", "newcomer")
    )
    check_plugin(OnlyRed, sample_clusters=[SampleCluster(nodes, (), pod, newcomer)])
