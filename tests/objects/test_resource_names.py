"""The resources that a node counts."""

from collections.abc import Callable

import pytest

from bayplan.objects.resource_names import is_dra_extended, is_extended, is_pod_level, is_scalar


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("cpu", "pod-level", id="cpu is counted in a column of its own"),
        pytest.param("ephemeral-storage", "", id="ephemeral storage too"),
        pytest.param("storage", "", id="an unknown unprefixed name is not counted"),
        pytest.param("example.com/gpu", "extended scalar dra", id="an extended resource"),
        pytest.param("hugepages-2Mi", "scalar pod-level", id="huge pages"),
        pytest.param("attachable-volumes-csi-x", "scalar", id="attachable volumes"),
        pytest.param("kubernetes.io/x", "scalar", id="the native domain"),
        pytest.param("a.kubernetes.io/x", "scalar", id="a domain below the native one"),
        pytest.param("deviceclass.resource.kubernetes.io/gpu", "scalar dra", id="a device class"),
        pytest.param("requests.example.com/gpu", "", id="a quota's name"),
        pytest.param("example.com/not valid", "", id="an invalid name"),
        pytest.param(f"{'a' * 250}/x", "", id="a domain too long for quota"),
    ],
)
def test_resource_names_are_classified(name: str, want: str) -> None:
    kinds: dict[str, Callable[[str], bool]] = {
        "extended": is_extended,
        "scalar": is_scalar,
        "dra": is_dra_extended,
        "pod-level": is_pod_level,
    }
    assert [kind for kind, test in kinds.items() if test(name)] == want.split()
