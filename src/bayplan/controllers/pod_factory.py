"""Creation of pods from templates; the data that all pods of a template share is prepared once.

All pods of a template share one spec, one labels map, one annotations map, one tuple of owners: the same objects, not
copies. The scheduler finds the compiled plan of a spec by identity, and 10,000 pods cost 10,000 names.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace as replace_fields

from bayplan.base.errors import InputError
from bayplan.cluster.admission import PodAdmission
from bayplan.cluster.naming import NameGenerator, pod_name_prefix
from bayplan.cluster.store import ObjectStore
from bayplan.controllers.writer import Writer
from bayplan.objects.kinds import kind_of
from bayplan.objects.meta import KubernetesObject, ObjectMeta, OwnerReference
from bayplan.objects.pod import Pod, PodCondition, PodSpec, PodStatus
from bayplan.objects.workloads import PodTemplateSpec

_PENDING = PodStatus(phase="Pending")
_GATED = PodStatus(
    phase="Pending",
    conditions=(
        PodCondition(
            type="PodScheduled",
            status="False",
            reason="SchedulingGated",
            message="Scheduling is blocked due to non-empty scheduling gates",
        ),
    ),
)


class PreparedTemplate(msgspec.Struct, frozen=True):
    """Data that the pods of one template share.

    Attributes:
        template: the template that the data was prepared from.
        admission: the version of the admission state at that time; see `PodFactory.is_current`.
        namespace, labels, annotations, finalizers, owner_references, spec: the namespace, labels, annotations,
            finalizers, owner references and spec of every pod.
        name_prefix: prefix of generated names.
    """

    template: PodTemplateSpec
    admission: int
    namespace: str
    labels: dict[str, str]
    annotations: dict[str, str]
    finalizers: tuple[str, ...]
    owner_references: tuple[OwnerReference, ...]
    name_prefix: str
    spec: PodSpec

    def of_template(self, template: PodTemplateSpec) -> PreparedTemplate:
        """Return the data as prepared for the owner's template, if `self` was prepared from a modified copy of it."""
        return replace_fields(self, template=template)


class PodFactory:
    """Creates pods for controllers.

    Args:
        store: the store of the pods.
        writer: the writer that creates the pods.
        names: the generator of pod names.
        admission: admits the spec of each template once, and charges every pod to quotas.
    """

    def __init__(self, store: ObjectStore, writer: Writer, names: NameGenerator, admission: PodAdmission) -> None:
        self._store = store
        self._writer = writer
        self._names = names
        self._admission = admission

    def prepare(
        self,
        owner: KubernetesObject,
        template: PodTemplateSpec,
        *,
        labels: dict[str, str] | None = None,
        finalizers: tuple[str, ...] = (),
    ) -> PreparedTemplate:
        """Return the data that the pods of a template share.

        Args:
            owner: the controlling object; pods live in its namespace.
            template: its pod template.
            labels: the labels to use instead of the template's.
            finalizers: the finalizers to add to the template's.

        Raises:
            InputError: the template has no labels, or its priority class does not exist.
        """
        if labels is None:
            labels = template.metadata.labels
        if not labels:
            kind = type(owner).__name__
            what = f"{kind} {owner.key} $.spec.template.metadata.labels"
            raise InputError(what, wanted="at least one label", got="none")
        metadata = owner.metadata
        sample = ObjectMeta(name=metadata.name, namespace=metadata.namespace, labels=labels)
        return PreparedTemplate(
            template=template,
            admission=self._admission.version,
            namespace=metadata.namespace,
            labels=labels,
            annotations=template.metadata.annotations,
            finalizers=template.metadata.finalizers + finalizers,
            owner_references=(controller_reference(owner),),
            name_prefix=pod_name_prefix(metadata.name),
            spec=self._admission.admit(Pod(metadata=sample, spec=template.spec)),
        )

    def is_current(self, prepared: PreparedTemplate, template: PodTemplateSpec) -> bool:
        """Return whether prepared data is current.

        It is if the template is the same object, and no priority class, limit range or quota has changed since.
        """
        return prepared.template is template and prepared.admission == self._admission.version

    def create(
        self,
        prepared: PreparedTemplate,
        now_ns: int,
        *,
        name: str = "",
        name_prefix: str = "",
        spec: PodSpec | None = None,
        labels: dict[str, str] | None = None,
        annotations: dict[str, str] | None = None,
    ) -> Pod:
        """Create one pod. The arguments override the template.

        Args:
            prepared: the data that all pods of the template share.
            now_ns: the current time.
            name: the name; generated if empty.
            name_prefix, spec, labels, annotations: values to use instead of the shared values.

        Raises:
            InputError: a pod with this name exists, or a quota would be exceeded.
        """
        prefix = name_prefix or prepared.name_prefix
        if spec is None:
            spec = prepared.spec
        metadata = ObjectMeta(
            name=name or self._names.generate(prefix, prepared.namespace, self._store.pods),
            generate_name=prefix,
            namespace=prepared.namespace,
            generation=1,
            labels=prepared.labels if labels is None else labels,
            annotations=prepared.annotations if annotations is None else annotations,
            owner_references=prepared.owner_references,
            finalizers=prepared.finalizers,
        )
        status = _GATED if spec.scheduling_gates else _PENDING
        pod = Pod(metadata=metadata, spec=spec, status=status)
        self._admission.charge(pod)
        return self._writer.create(pod, now_ns)


def controller_reference(owner: KubernetesObject) -> OwnerReference:
    """Return the controller reference to an owner, for the objects that it creates."""
    kind = kind_of(type(owner))
    return OwnerReference(
        api_version=kind.api_version,
        kind=kind.kind,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )
