"""The objects that operations of scheduler_perf create: nodes, namespaces, pods with volumes, objects from any template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from bayplan.base.errors import InputError
from bayplan.base.plain_data import Document
from bayplan.formats import yaml_text
from bayplan.formats.files import InputFile, read_bytes
from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import decode, find_kind
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.scenarios.go_templates import Value, render

_HOSTNAME = "kubernetes.io/hostname"
_MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
_DEFAULT_NODE: Document = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"generateName": "scheduler-perf-"},
    "status": {
        "capacity": {"pods": "110", "cpu": "4", "memory": "32Gi"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}
"""The node that operations without a template create."""

_AMOUNTS = {"cpu": "100m", "memory": "500Mi"}
_DEFAULT_POD: Document = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "pod-"},
    "spec": {
        "containers": [{"name": "pause", "image": "pause", "resources": {"limits": _AMOUNTS, "requests": _AMOUNTS}}]
    },
}
"""The pod that operations without a template create."""


def labels_match(labels: Mapping[str, str], pod: Pod) -> bool:
    """Return whether a pod has all of these labels."""
    return all(pod.metadata.labels.get(key) == value for key, value in labels.items())


class PerfObjects:
    """Creates objects from templates. Each template file is read once.

    Args:
        folder: the folder of the configuration, which paths of templates are relative to.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._texts: dict[Path, str] = {}

    def _document(self, path: Path, values: Mapping[str, Value]) -> Document:
        """Render a template, and return its document.

        Raises:
            InputError: the file can't be read, or does not contain exactly one object.
        """
        if path not in self._texts:
            self._texts[path] = read_bytes(InputFile(str(path), path)).decode("utf-8", "replace")
        text = render(self._texts[path], values, name=str(path))
        try:
            found = [parsed.value for parsed in yaml_text.parse(text)]
        except yaml_text.YamlError as problem:
            raise InputError(f"broken YAML: {problem.problem}", where=f"{path}:{problem.line + 1}") from None
        if len(found) != 1 or not isinstance(found[0], dict):
            found_text = f"a {type(found[0]).__name__}" if len(found) == 1 else f"{len(found)} documents"
            raise InputError(str(path), wanted="one YAML object (a mapping)", got=found_text)
        return cast("Document", found[0])

    def _item(
        self, path: Path, index: int, count: int, namespace: str, suffix: str, values: Mapping[str, Value]
    ) -> Document:
        """Return the object with this index from a template, with its name and namespace."""
        document = self._document(path, {"Index": index, "Count": count, **values})
        return _named(document, namespace, suffix)

    def many(
        self, path: Path, count: int, namespace: str, operation: int, values: Mapping[str, Value]
    ) -> list[KubernetesObject]:
        """Return `count` objects from a template."""
        return [
            typed(self._item(path, index, count, namespace, f"{operation}-{index}", values)) for index in range(count)
        ]

    def churned(self, paths: Sequence[Path], namespace: str, turn: int) -> list[KubernetesObject]:
        """Return the objects of one turn of a churn operation, one for each template."""
        return [
            typed(self._item(path, turn, 1, namespace, f"{number}-{turn}", {})) for number, path in enumerate(paths)
        ]

    def namespaces(self, operation: Mapping[str, Any], count: int) -> list[KubernetesObject]:
        """Return the namespaces ``PREFIX-0``, ``PREFIX-1``, ..."""
        template = operation.get("namespaceTemplatePath")
        found = []
        for index in range(count):
            document: Document = {"apiVersion": "v1", "kind": "Namespace"}
            if isinstance(template, str):
                document = self._document(self._folder / template, {"Index": index, "Count": count})
            metadata = {**_metadata(document), "name": f"{operation.get('prefix')}-{index}"}
            found.append(typed({**document, "metadata": metadata}))
        return found

    def nodes(
        self, operation: Mapping[str, Any], count: int, number: int, values: Mapping[str, Value]
    ) -> list[KubernetesObject]:
        """Return the nodes of a createNodes operation, changed as its ``...Strategy`` fields say, with their CSINodes."""
        template = operation.get("nodeTemplatePath")
        found: list[KubernetesObject] = []
        for index in range(count):
            if isinstance(template, str):
                document = self._item(self._folder / template, index, count, "", f"{number}-{index}", values)
            else:
                document = _named(_DEFAULT_NODE, "", f"{number}-{index}")
            document, csi_node = _prepared(document, operation, index)
            found.append(typed(document))
            if csi_node is not None:
                found.append(typed(csi_node))
        return found

    def pods(
        self,
        operation: Mapping[str, Any],
        path: Path | None,
        count: int,
        namespace: str,
        prefix: str,
        values: Mapping[str, Value],
        *,
        signature_batch: int,
    ) -> list[KubernetesObject]:
        """Return pods from a template (None: upstream's default pod), each after its volume claim and volume, if it has any."""
        volume, claim = (
            operation.get("persistentVolumeTemplatePath"),
            operation.get("persistentVolumeClaimTemplatePath"),
        )
        batched = "signatureBatchSize" in operation or "signatureBatchSizeParam" in operation
        found: list[KubernetesObject] = []
        for index in range(count):
            if path is None:
                document = _named(_DEFAULT_POD, namespace, f"{prefix}-{index}")
            else:
                document = self._item(path, index, count, namespace, f"{prefix}-{index}", values)
            if batched:
                labels = {**cast("Document", _metadata(document).get("labels") or {})}
                labels["signature"] = f"signature-label-{index // signature_batch}"
                document = {**document, "metadata": {**_metadata(document), "labels": labels}}
            if isinstance(volume, str) and isinstance(claim, str):
                name = f"pvc-{prefix}-{index}"
                found += self._bound_volume(self._folder / volume, self._folder / claim, namespace, name)
                spec = cast("dict[str, Any]", document["spec"])
                volumes = [{"name": "vol", "persistentVolumeClaim": {"claimName": name}}]
                document = {**document, "spec": {**spec, "volumes": volumes}}
            found.append(typed(document))
        return found

    def _bound_volume(self, volume: Path, claim: Path, namespace: str, name: str) -> list[KubernetesObject]:
        """Return a claim and a volume that are bound to each other."""
        volume_name = f"{namespace}-{name.replace('pvc', 'pv', 1)}"
        made = dict(self._document(claim, {}))
        made["metadata"] = {**_metadata(made), "name": name, "namespace": namespace}
        made["spec"] = {**cast("Document", made["spec"]), "volumeName": volume_name}
        made["status"] = {"phase": "Bound"}
        persistent = dict(self._document(volume, {}))
        persistent["metadata"] = {**_metadata(persistent), "name": volume_name}
        spec: dict[str, Any] = {**cast("Document", persistent["spec"])}
        spec["claimRef"] = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": name}
        if isinstance(spec.get("csi"), dict):
            spec["csi"] = {**spec["csi"], "volumeHandle": volume_name}
        elif isinstance(spec.get("awsElasticBlockStore"), dict):
            spec["awsElasticBlockStore"] = {**spec["awsElasticBlockStore"], "volumeID": volume_name}
        persistent["spec"], persistent["status"] = spec, {"phase": "Bound"}
        return [typed(made), typed(persistent)]


def typed(document: Document) -> KubernetesObject:
    """Return the typed object of a document, with defaults. Accept PodGroups of any version."""
    kind = str(document.get("kind"))
    if find_kind(str(document.get("apiVersion")), kind) is None and kind == "PodGroup":
        document = {**document, "apiVersion": "scheduling.k8s.io/v1alpha2"}
    return default_object(decode(document))


def _metadata(document: Document) -> Document:
    return cast("Document", document.get("metadata") or {})


def _named(document: Document, namespace: str, suffix: str) -> Document:
    """Return a document with a namespace and a name, which is derived from `generateName` if necessary."""
    metadata = dict(_metadata(document))
    prefix = metadata.pop("generateName", "")
    metadata.setdefault("name", f"{prefix or 'object-'}{suffix}")
    row = find_kind(str(document.get("apiVersion")), str(document.get("kind")))
    if namespace and (row is None or row.namespaced):
        metadata["namespace"] = namespace
    if document.get("kind") == "Node":
        labels = dict(cast("Document", metadata.get("labels") or {}))
        labels.setdefault(_HOSTNAME, metadata["name"])
        metadata["labels"] = labels
    return {**document, "metadata": metadata}


def _prepared(document: Document, operation: Mapping[str, Any], index: int) -> tuple[Document, Document | None]:
    """Return a node changed by the operation's strategies, and its CSINode if it has one."""
    metadata, status = dict(_metadata(document)), dict(cast("dict[str, Any]", document.get("status") or {}))
    status.setdefault("allocatable", status.get("capacity") or {})
    labels = dict(cast("Document", metadata.get("labels") or {}))
    csi_node: Document | None = None
    zones, unique = operation.get("labelNodePrepareStrategy"), operation.get("uniqueNodeLabelStrategy")
    allocatable = operation.get("nodeAllocatableStrategy")
    if isinstance(zones, dict):
        values = zones.get("labelValues") or [zones.get("labelValue")]
        labels[str(zones.get("labelKey"))] = str(values[index % len(values)])
    if isinstance(unique, dict):
        labels[str(unique.get("labelKey"))] = str(metadata["name"])
    if isinstance(allocatable, dict):
        status["allocatable"] = {**status["allocatable"], **(allocatable.get("nodeAllocatable") or {})}
        drivers = [
            {"name": name, "nodeID": metadata["name"], "allocatable": amount}
            for name, amount in (allocatable.get("csiNodeAllocatable") or {}).items()
        ]
        migrated = ",".join(allocatable.get("migratedPlugins") or ())
        csi_node = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": metadata["name"], "annotations": {_MIGRATED: migrated} if migrated else {}},
            "spec": {"drivers": drivers},
        }
    metadata["labels"] = labels
    return {**document, "metadata": metadata, "status": status}, csi_node
