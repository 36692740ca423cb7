"""The controllers of a server, and how they are created."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from bayplan.apiserver.bridge.api_writer import ApiWriter
from bayplan.apiserver.bridge.document_controller import DocumentFollower
from bayplan.apiserver.bridge.document_owners import DocumentGarbageCollector
from bayplan.apiserver.bridge.namespace_controllers import NamespaceController, NamespaceDefaultsController
from bayplan.apiserver.bridge.object_writer import ObjectWriter
from bayplan.apiserver.bridge.policy_controller import PolicyController
from bayplan.apiserver.bridge.quota_controller import QuotaController
from bayplan.apiserver.bridge.revision_controller import RevisionController
from bayplan.apiserver.bridge.revision_documents import stored_revisions
from bayplan.apiserver.bridge.typed_store import TypedStore
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.store.item import Write
from bayplan.base.random_streams import RandomStreams
from bayplan.cluster.admission import PodAdmission
from bayplan.cluster.naming import NameGenerator
from bayplan.cluster.store import Kind
from bayplan.controllers.adoption import Ownership, PodOwnership, ReplicaSetOwnership
from bayplan.controllers.controller import Controller, ControllerTools
from bayplan.controllers.daemon_set import DaemonSetController
from bayplan.controllers.deployment_progress import DeploymentProgress
from bayplan.controllers.disruption import DisruptionController
from bayplan.controllers.manager import ControllerManager, workload_controllers
from bayplan.controllers.node_lifecycle import NodeLifecycleController
from bayplan.controllers.persistent_volumes import PersistentVolumeController
from bayplan.controllers.pod_claims import PodClaimController
from bayplan.controllers.pod_factory import PodFactory
from bayplan.controllers.pod_gc import QUARANTINE_NS, PodGarbageCollector
from bayplan.controllers.protection import ClaimProtection, VolumeProtection
from bayplan.controllers.resource_claims import ResourceClaimController
from bayplan.controllers.stateful_set import StatefulSetController
from bayplan.objects.pod import Pod, PodSpec
from bayplan.objects.workloads import DaemonSet, StatefulSet


class NoAdmission(PodAdmission):
    """Leaves pods unchanged, because the API admits them when they are created."""

    def admit(self, pod: Pod) -> PodSpec:
        """Return the spec of the pod, unchanged."""
        return pod.spec

    def charge(self, pod: Pod) -> None:
        """Do nothing: the API enforces quotas."""


BURST = 16
"""Maximum number of objects that a controller creates or deletes in one turn, which takes a few milliseconds."""


@dataclass(frozen=True, slots=True)
class ControllerSet:
    """All controllers of a server.

    Attributes:
        manager: runs the controllers.
        of_documents: those controllers that receive every write.
    """

    manager: ControllerManager
    of_documents: tuple[DocumentFollower, ...]

    def begin(self, now_ns: int) -> None:
        """Queue reconciles for all existing objects."""
        self.manager.follow(now_ns)
        for controller in self.of_documents:
            controller.begin(now_ns)

    def follow(self, write: Write, now_ns: int) -> None:
        """Pass a write to the controllers that receive every write."""
        for controller in self.of_documents:
            try:
                controller.follow(write, now_ns)
            except Exception as problem:
                self.manager.report(f"{type(controller).__name__} {write.table}", problem)


def make_controllers(
    backend: Backend,
    store: TypedStore,
    api_writer: ApiWriter,
    writer: ObjectWriter,
    streams: RandomStreams,
    certificate: str,
) -> ControllerSet:
    """Return the controllers of a server.

    Args:
        backend: the backend of the API.
        store: the typed objects.
        api_writer: writes typed objects through the API.
        writer: writes untyped objects through the API.
        streams: the random streams for generated names.
        certificate: the PEM certificate of the server, or empty.
    """
    names = NameGenerator(streams.stream("bridge.names"))
    admission = NoAdmission(store)
    tools = ControllerTools(store, api_writer, PodFactory(store, api_writer, names, admission), burst=BURST)
    pod_gc = PodGarbageCollector(tools, quarantine_ns=QUARANTINE_NS)
    node_lifecycle = NodeLifecycleController(tools, waits_for_kubelets=True)
    asked: list[ControllerManager] = []

    def enqueue(controller: Controller, key: str, now_ns: int) -> None:
        asked[0].enqueue(controller, key, now_ns)

    documents = backend.store
    collector = DocumentGarbageCollector(tools, documents, writer, enqueue)
    pod_ownership, replica_set_ownership = PodOwnership(tools), ReplicaSetOwnership(tools)
    restored = partial(stored_revisions, documents)
    own: dict[Kind, Controller] = {
        StatefulSet: StatefulSetController(tools, restored),
        DaemonSet: DaemonSetController(tools, restored),
    }
    workloads = [own.get(each.kind, each) for each in workload_controllers(tools)]
    _set_ownerships(workloads, pod_ownership, replica_set_ownership)
    manager = ControllerManager(
        store,
        workloads,
        others=(
            node_lifecycle,
            pod_gc,
            pod_ownership,
            replica_set_ownership,
            DeploymentProgress(tools),
            DisruptionController(tools),
            PodClaimController(tools, names),
            ResourceClaimController(tools),
            PersistentVolumeController(tools),
            ClaimProtection(tools),
            VolumeProtection(tools),
            RevisionController(tools, documents, writer),
        ),
        garbage_collector=collector,
        pod_gc=pod_gc,
        node_lifecycle=node_lifecycle,
        admission=admission,
        retries=True,
    )
    asked.append(manager)
    of_documents = (
        collector,
        NamespaceController(tools, documents, writer, enqueue, backend=backend),
        NamespaceDefaultsController(tools, documents, writer, enqueue, certificate=certificate),
        QuotaController(tools, documents, writer, enqueue),
        PolicyController(tools, documents, writer, enqueue, backend=backend),
    )
    return ControllerSet(manager, of_documents)


def _set_ownerships(controllers: list[Controller], *ownerships: Ownership) -> None:
    """Let workloads adopt and release objects before each reconcile."""
    for controller in controllers:
        for ownership in ownerships:
            if controller.kind in ownership.owner_kinds:
                controller.ownership = ownership
