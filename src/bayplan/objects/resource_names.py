"""Names of resources: their types, and which of them a node counts.

Source: https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/ and the behavior of
k8s.io/kubernetes/pkg/apis/core/v1/helper v1.36.3.
"""

from functools import lru_cache

from bayplan.objects.names import check_qualified_name

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"
STORAGE = "storage"
DEVICE_CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"

_NATIVE = "kubernetes.io/"
_HUGE_PAGES = "hugepages-"
_ATTACHABLE_VOLUMES = "attachable-volumes-"


@lru_cache(maxsize=4096)
def is_extended(name: str) -> bool:
    """Return whether a resource name has a domain other than Kubernetes' own, e.g. `example.com/gpu`, and is valid."""
    if "/" not in name or _NATIVE in name or name.startswith("requests."):
        return False
    return not check_qualified_name(f"requests.{name}")


def is_huge_page(name: str) -> bool:
    """Return whether a resource is huge pages of any size, e.g. `hugepages-2Mi`."""
    return name.startswith(_HUGE_PAGES)


@lru_cache(maxsize=4096)
def is_scalar(name: str) -> bool:
    """Return whether nodes count a resource by name: extended, huge pages, `*kubernetes.io/`, attachable volumes."""
    return is_extended(name) or is_huge_page(name) or _NATIVE in name or name.startswith(_ATTACHABLE_VOLUMES)


def is_dra_extended(name: str) -> bool:
    """Return whether a device class may serve a resource: extended ones, or `deviceclass.resource.kubernetes.io/*`."""
    return is_extended(name) or name.startswith(DEVICE_CLASS_PREFIX)


def is_pod_level(name: str) -> bool:
    """Return whether a resource supports pod-level requests: CPU, memory or huge pages."""
    return name in (CPU, MEMORY) or is_huge_page(name)
