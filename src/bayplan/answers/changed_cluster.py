"""A cluster in the middle of a sequence of changes: the current versions of its objects, and the pods to schedule afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from bayplan.answers.displaced_pods import is_recreated_elsewhere
from bayplan.answers.question_cluster import QuestionCluster
from bayplan.answers.trial import Trial
from bayplan.answers.workloads import Found, find_workload
from bayplan.cluster.owned_pods import is_daemon_pod
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod

T = TypeVar("T", bound=KubernetesObject)


class Effect(msgspec.Struct):
    """The direct effect of a change, before anything is scheduled.

    Attributes:
        displaced: the pods, by key, that lost their node or were replaced, and are recreated.
        gone: why pods are not recreated, by key.
        added: the workload of each new pod, or the file that it comes from, by key.
        copies: the numbers of the next copies of workloads; see `Template`.
        nodes_gone: the names of removed nodes.
        nodes_added: the names of new nodes.
        notes: sentences for the assumptions of the answer.
        warnings: sentences for its warnings.
    """

    displaced: dict[str, Pod] = {}
    gone: dict[str, str] = {}
    added: dict[str, str] = {}
    copies: dict[str, int] = {}
    nodes_gone: dict[str, None] = {}
    nodes_added: dict[str, None] = {}
    notes: dict[str, None] = {}
    warnings: dict[str, None] = {}


class ChangedCluster:
    """The objects of a trial while changes are executed one after another. Changes read pods here, not from the source.

    A pod that changes displace waits for the end of all changes, as do waiting pods and pods to schedule again. Those that
    are gone remain known, so that later changes can name their workload.

    Args:
        cluster: the cluster before the changes.
        trial: the trial, without the pods to schedule again.
        again: the pods to schedule again.

    Attributes:
        trial: the trial.
        effect: the effect of the changes so far.
        waiting: the current versions of the waiting pods, by key.
        again: the current versions of the pods to schedule again, by key.
        ended: the pods of existing DaemonSets that ended with their nodes, by key.
        now_ns: the time of the cluster.
    """

    def __init__(self, cluster: QuestionCluster, trial: Trial, effect: Effect, again: Sequence[Pod] = ()) -> None:
        self.trial = trial
        self.effect = effect
        self.waiting = dict(cluster.waiting)
        self.again = {pod.key: pod for pod in again}
        self.ended: dict[str, Pod] = {}
        self.now_ns = cluster.now_ns
        self._cluster = cluster
        self._removed: dict[str, Pod] = {}

    # Reading.

    def get(self, kind: type[T], key: str) -> T | None:
        """Return the current version of an object by its key, or None; of a pod that is gone, the last version."""
        found: KubernetesObject | None
        if kind is Pod:
            found = self._pod(key)
        elif kind is Node:
            found = self.trial.node(key)
        else:
            return self.trial.catalog.get(kind, key)
        return found if isinstance(found, kind) else None

    def all(self, kind: type[T]) -> Iterable[T]:
        """Return the current versions of all objects of a kind, pods in the order of the source; see `get`."""
        if kind is Pod:
            keys = dict.fromkeys([*(pod.key for pod in self._cluster.all(Pod)), *self.effect.added])
            return [pod for key in keys if (pod := self.get(kind, key)) is not None]
        if kind is Node:
            return [node for node in self.trial.nodes() if isinstance(node, kind)]
        return self.trial.catalog.all(kind)

    def _places(self) -> tuple[dict[str, Pod], ...]:
        """Return where the pods are, by key, that are not in the trial; pods that others have evicted come last."""
        return self.effect.displaced, self.again, self.waiting, self.trial.victims

    def _pod(self, key: str) -> Pod | None:
        # Finished pods, and pods on unknown nodes, are not in the trial.
        return self._removed.get(key) or self.current(key) or self._cluster.get(Pod, key)

    def current(self, key: str) -> Pod | None:
        """Return the current version of a pod that runs, waits or is recreated; None if there is none."""
        if key in self.effect.gone:
            return None
        places = (self.trial.scheduler.pods, *self._places())
        return next((pod for place in places if (pod := place.get(key)) is not None), None)

    def workload(self, text: str) -> Found:
        """Return the workload with a name, with its pods and copies, also those that are gone; see `find_workload`.

        Raises:
            InputError: no workload or pod matches, or several do.
        """
        found = find_workload(text, self)
        known = {pod.key for pod in found.pods}
        # The copies of a single pod have no controller that they share.
        keys = [key for key, label in self.effect.added.items() if label == found.label and key not in known]
        copies = [pod for key in keys if (pod := self._pod(key)) is not None]
        return Found(found.kind, found.namespace, found.name, found.item, (*found.pods, *copies))

    def present(self, pods: Iterable[Pod]) -> list[Pod]:
        """Return the given pods except those that are gone."""
        return [pod for pod in pods if pod.key not in self.effect.gone]

    # Writing.

    def update(self, pod: Pod) -> None:
        """Replace the current version of a pod that is not gone. It does not move."""
        if pod.key in self.trial.nominated:
            self.trial.update_nominated(pod)
        elif pod.key in self.trial.scheduler.pods:
            # Clear the resource version, or the scheduler would ignore the update as a duplicate.
            self.trial.put(replace(pod, metadata=replace(pod.metadata, resource_version="")))
            return
        for place in self._places():
            if pod.key in place:
                place[pod.key] = pod
                return

    def create(self, pod: Pod, label: str) -> None:
        """Add a new pod. `label`: its workload, or the file that it comes from."""
        self._removed.pop(pod.key, None)
        self.effect.gone.pop(pod.key, None)
        self.effect.added[pod.key] = label
        self.trial.put(pod)

    def replace(self, pod: Pod) -> None:
        """Delete a pod with a node, and create another with its name; unless it names a node, schedule it after all changes."""
        self.trial.remove_pod(pod.key)
        if pod.spec.node_name:
            self.trial.put(pod)
        else:
            self.effect.displaced[pod.key] = pod

    def remove(self, pod: Pod, why: str) -> None:
        """Remove a pod for good."""
        self.trial.remove_pod(pod.key)
        for place in (self.effect.displaced, self.again, self.waiting):
            place.pop(pod.key, None)
        self.effect.gone[pod.key] = why
        self._removed[pod.key] = pod

    def displace(self, pod: Pod, why_gone: str = "it ends with its node") -> None:
        """Remove a pod from its node. If it is not recreated elsewhere, it is gone for the given reason."""
        self.trial.remove_pod(pod.key)
        if not is_recreated_elsewhere(pod):
            self.remove(pod, why_gone)
            if is_daemon_pod(pod):
                self.ended[pod.key] = pod
            return
        self.effect.displaced[pod.key] = pod
        if pod.metadata.controller() is None:
            self.effect.notes[
                "pods without a controller come back as copies; in a real cluster you have to create them yourself"
            ] = None
