"""The device class for each extended resource."""

import pytest

from bayplan.objects.kinds import decode
from bayplan.objects.resource import DeviceClass
from bayplan.state.device_classes import DeviceClassResolver
from bayplan.state.object_catalog import ObjectCatalog

GPU = "example.com/gpu"
OLD, NEW = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"


def device_class(name: str, claimed: str | None = GPU, created: str | None = None) -> DeviceClass:
    metadata = {"name": name, **({"creationTimestamp": created} if created else {})}
    spec = {"extendedResourceName": claimed} if claimed else {}
    found = decode({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": metadata, "spec": spec})
    assert isinstance(found, DeviceClass)
    return found


def name_of(found: DeviceClass | None) -> str | None:
    return None if found is None else found.metadata.name


@pytest.mark.parametrize(
    ("classes", "resource", "want"),
    [
        pytest.param([], GPU, None, id="no class"),
        pytest.param([device_class("a")], GPU, "a", id="the class that claims it"),
        pytest.param([device_class("a", None)], GPU, None, id="a class that claims nothing"),
        pytest.param(
            [device_class("a", None)],
            "deviceclass.resource.kubernetes.io/a",
            "a",
            id="every class has an implicit name",
        ),
        pytest.param(
            [device_class("a", created=OLD), device_class("b", created=NEW)], GPU, "b", id="the newest of two"
        ),
        pytest.param([device_class("a", created=NEW), device_class("b", created=OLD)], GPU, "a", id="in any order"),
        pytest.param(
            [device_class("b", created=OLD), device_class("a", created=OLD)], GPU, "a", id="the first by name"
        ),
        pytest.param(
            [device_class("b"), device_class("a", created=OLD)], GPU, "a", id="a missing time is older than any"
        ),
        pytest.param(
            [device_class("a", created=NEW), device_class("b", created=OLD)],
            "deviceclass.resource.kubernetes.io/b",
            None,
            id="a class that loses its name has no implicit name either, as upstream",
        ),
    ],
)
def test_resolver_finds_the_class_of_an_extended_resource(
    classes: list[DeviceClass], resource: str, want: str | None
) -> None:
    catalog = ObjectCatalog()
    for item in classes:
        catalog.put(item.metadata.name, item)
    assert name_of(DeviceClassResolver(catalog).get(resource)) == want


def test_resolver_follows_catalog_changes() -> None:
    catalog = ObjectCatalog()
    resolver = DeviceClassResolver(catalog)
    assert resolver.get(GPU) is None
    catalog.put("a", device_class("a"))
    assert name_of(resolver.get(GPU)) == "a"
    catalog.remove(DeviceClass, "a")
    assert resolver.get(GPU) is None
