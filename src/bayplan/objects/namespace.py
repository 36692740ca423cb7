"""Namespaces, whose labels the namespace selectors of pod affinity read."""

from bayplan.objects.meta import ApiStruct, KubernetesObject


class NamespaceSpec(ApiStruct, frozen=True, kw_only=True):
    """The finalizers of a namespace."""

    finalizers: tuple[str, ...] = ()


class NamespaceStatus(ApiStruct, frozen=True, kw_only=True):
    """The status of a namespace. Phase: Active, Terminating."""

    phase: str = ""


class Namespace(KubernetesObject, frozen=True, kw_only=True):
    """A namespace."""

    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()
