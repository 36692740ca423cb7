"""Which controllers run over the API, and what they are made of."""

from __future__ import annotations

from dataclasses import dataclass

from bayplan.apiserver.bridge.adoption import AdoptingDeployments, AdoptingReplicaSets, PodOwnership
from bayplan.apiserver.bridge.controlled_store import ControlledStore
from bayplan.apiserver.bridge.deletion import ApiDeletion
from bayplan.apiserver.bridge.deployment_progress import DeploymentProgress
from bayplan.apiserver.bridge.document_controller import DocumentController
from bayplan.apiserver.bridge.garbage_collector import ApiGarbageCollector
from bayplan.apiserver.bridge.manager import PacedManager
from bayplan.apiserver.bridge.namespace_controllers import NamespaceController, NamespaceFurnisher
from bayplan.apiserver.bridge.node_agent import NodeAgent
from bayplan.apiserver.bridge.object_writer import ObjectWriter
from bayplan.apiserver.bridge.patience import NoAdmission, PatientNodeLifecycle, PatientPodGarbageCollector
from bayplan.apiserver.bridge.protection import ClaimProtection, VolumeProtection
from bayplan.apiserver.bridge.quota_controller import QuotaController
from bayplan.apiserver.bridge.remembering_sets import RememberingDaemonSets, RememberingStatefulSets
from bayplan.apiserver.bridge.revision_keeper import RevisionKeeper
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.store.item import Write
from bayplan.base.random_streams import RandomStreams
from bayplan.cluster.cluster import workload_controllers
from bayplan.cluster.controllers.controller import Controller, ControllerTools
from bayplan.cluster.controllers.disruption import DisruptionController
from bayplan.cluster.controllers.persistent_volumes import PersistentVolumeController
from bayplan.cluster.controllers.pod_claims import PodClaimController
from bayplan.cluster.controllers.resource_claims import ResourceClaimController
from bayplan.cluster.naming import NameGenerator
from bayplan.cluster.pod_maker import PodMaker
from bayplan.cluster.store import Kind
from bayplan.objects.workloads import DaemonSet, Deployment, ReplicaSet, StatefulSet

BURST = 16
"""How many objects one turn of a controller creates or deletes: a few milliseconds of writes."""


@dataclass(frozen=True, slots=True)
class ControllerSet:
    """All controllers.

    Attributes:
        manager: runs them.
        of_documents: those that are told of every write.
    """

    manager: PacedManager
    of_documents: tuple[DocumentController, ...]

    def begin(self, now_ns: int) -> None:
        """Look at everything there is."""
        self.manager.follow(now_ns)
        for controller in self.of_documents:
            controller.begin(now_ns)

    def follow(self, write: Write, now_ns: int) -> None:
        """Look at a write."""
        for controller in self.of_documents:
            controller.follow(write, now_ns)


def make_controllers(
    backend: Backend,
    store: ControlledStore,
    writer: ObjectWriter,
    agent: NodeAgent,
    streams: RandomStreams,
    certificate: str,
) -> ControllerSet:
    """Return the controllers over a store, in the order that `bayplan.cluster` has.

    Args:
        backend: of the API.
        store: typed objects, written through the API.
        writer: writes to the API.
        agent: the kubelet.
        streams: of the names that controllers make up.
        certificate: of the server, PEM, or empty.
    """
    names = NameGenerator(streams.stream("bridge.names"))
    admission = NoAdmission(store)
    deletion = ApiDeletion(store, agent, writer)
    tools = ControllerTools(store, deletion, PodMaker(store, names, admission), burst=BURST)
    pod_gc = PatientPodGarbageCollector(tools)
    node_lifecycle = PatientNodeLifecycle(tools, store.narrator)
    asked: list[PacedManager] = []

    def ask(controller: Controller, key: str, now_ns: int) -> None:
        asked[0].ask(controller, key, now_ns)

    documents = backend.store
    collector = ApiGarbageCollector(tools, documents, writer, ask)
    ownership = PodOwnership(tools, ask)
    own: dict[Kind, Controller] = {
        Deployment: AdoptingDeployments(tools),
        ReplicaSet: AdoptingReplicaSets(tools, ownership),
        StatefulSet: RememberingStatefulSets(tools, documents),
        DaemonSet: RememberingDaemonSets(tools, documents),
    }
    manager = PacedManager(
        store,
        [own.get(each.kind, each) for each in workload_controllers(tools)],
        others=(
            node_lifecycle,
            pod_gc,
            ownership,
            DeploymentProgress(tools),
            DisruptionController(tools),
            PodClaimController(tools, names),
            ResourceClaimController(tools),
            PersistentVolumeController(tools),
            ClaimProtection(tools),
            VolumeProtection(tools),
            RevisionKeeper(tools, documents, writer),
        ),
        garbage_collector=collector,
        pod_gc=pod_gc,
        node_lifecycle=node_lifecycle,
        admission=admission,
        narrator=store.narrator,
    )
    asked.append(manager)
    of_documents = (
        collector,
        NamespaceController(tools, documents, writer, ask, backend=backend),
        NamespaceFurnisher(tools, documents, writer, ask, certificate=certificate),
        QuotaController(tools, documents, writer, ask),
    )
    return ControllerSet(manager, of_documents)
