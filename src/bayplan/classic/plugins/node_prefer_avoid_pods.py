"""NodePreferAvoidPodsPriority: a node can ask, by an annotation, not to get the pods of certain controllers."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator

import msgspec

from bayplan.classic.plugins.priority import MAX_PRIORITY
from bayplan.framework.plugin import Handle, Reads, ScorePlugin
from bayplan.framework.rule import ScoreRule
from bayplan.objects.pod import Pod
from bayplan.state.cluster_state import ClusterState

ANNOTATION = "scheduler.alpha.kubernetes.io/preferAvoidPods"
KINDS = ("ReplicationController", "ReplicaSet")


class ControllerSpec(msgspec.Struct, frozen=True):
    """Kind and uid of the pod's controller, or None if it is of no kind that nodes can avoid."""

    key: tuple[str, str] | None


class NodePreferAvoidPodsPriority(ScorePlugin[ControllerSpec]):
    """Scores 0 for nodes that ask to avoid the pod's controller, else 10. Its weight is 10,000."""

    name = "NodePreferAvoidPodsPriority"
    reads = Reads.NODES
    pre_reads = Reads.NOTHING

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._avoided: dict[str, frozenset[tuple[str, str]]] = {}

    def sign_pod(self, pod: Pod) -> Hashable:
        """Return the controller's kind and uid."""
        return _controller(pod)

    def compile(self, pod: Pod, cluster: ClusterState) -> ControllerSpec:
        """Return the controller as the spec."""
        return ControllerSpec(_controller(pod))

    def score_rule(self, spec: ControllerSpec, cluster: ClusterState) -> ScoreRule:
        """Return the rule that reads the annotation of a node."""
        return NotAvoided(spec.key, self.avoided_by, cluster)

    def avoided_by(self, text: str) -> frozenset[tuple[str, str]]:
        """Return the controllers (kind, uid) that an annotation names."""
        known = self._avoided.get(text)
        if known is None:
            known = self._avoided[text] = frozenset(avoided_controllers(text))
        return known


class NotAvoided(ScoreRule):
    """Scores 0 if the node's annotation says that it avoids the pod's controller, else 10."""

    def __init__(
        self,
        controller: tuple[str, str] | None,
        avoided_by: Callable[[str], frozenset[tuple[str, str]]],
        cluster: ClusterState,
    ) -> None:
        super().__init__(cluster.columns)
        self._controller = controller
        self._avoided_by = avoided_by
        self._nodes = cluster.nodes

    def score(self, row: int) -> int:
        """Return the score of a node."""
        node = self._nodes.nodes[row] if self._controller is not None else None
        text = node.metadata.annotations.get(ANNOTATION) if node is not None else None
        return 0 if text and self._controller in self._avoided_by(text) else MAX_PRIORITY


def _controller(pod: Pod) -> tuple[str, str] | None:
    owner = pod.metadata.controller()
    return (owner.kind, owner.uid) if owner is not None and owner.kind in KINDS else None


def avoided_controllers(text: str) -> Iterator[tuple[str, str]]:
    """Yield kind and uid of each controller in an annotation; nothing if the annotation is invalid."""
    try:
        value = json.loads(text)
    except ValueError:
        return
    entries = _field(value, "preferAvoidPods")
    if not isinstance(entries, list):
        return
    found = []
    for entry in entries:
        controller = _field(_field(entry, "podSignature"), "podController")
        kind, uid = _field(controller, "kind"), _field(controller, "uid")
        if not isinstance(kind, str | None) or not isinstance(uid, str | None):
            return
        found.append((kind or "", uid or ""))
    yield from found


def _field(value: object, name: str) -> object:
    """Return a field as Go's decoder finds it: by its exact name, or else ignoring case."""
    if not isinstance(value, dict):
        return None
    if name in value:
        return value[name]
    return next((item for key, item in value.items() if key.lower() == name.lower()), None)
