"""The catalog reports which objects were written since a version, and groups follow these writes."""

from bayplan.objects.storage import CSIDriver, PersistentVolume, PersistentVolumeSpec
from bayplan.state.object_catalog import ObjectCatalog, ObjectGroups


def test_written_returns_the_keys_of_one_type_in_order() -> None:
    catalog = ObjectCatalog()
    catalog.put("a", PersistentVolume())
    catalog.put("b", PersistentVolume())
    catalog.put("driver", CSIDriver())
    catalog.remove(PersistentVolume, "a")
    assert catalog.written(PersistentVolume, 0) == ["a", "b", "a"]
    assert catalog.written(PersistentVolume, 2) == ["a"]
    assert catalog.written(PersistentVolume, catalog.version(PersistentVolume)) == []
    assert catalog.written(CSIDriver, 0) == ["driver"]
    assert catalog.copy().written(PersistentVolume, 1) == ["b", "a"]


def test_written_returns_none_for_versions_older_than_the_log() -> None:
    catalog = ObjectCatalog()
    for number in range(2 * catalog.REMEMBERED + 1):
        catalog.put(str(number % 7), PersistentVolume())
    assert catalog.written(PersistentVolume, 0) is None
    end = catalog.version(PersistentVolume)
    reported = catalog.written(PersistentVolume, end - catalog.REMEMBERED)
    assert reported is not None
    assert len(reported) == catalog.REMEMBERED


def groups_by_class(catalog: ObjectCatalog) -> ObjectGroups[PersistentVolume]:
    """Return the volumes grouped by storage class."""
    return ObjectGroups(catalog, PersistentVolume, lambda volume: (volume.spec.storage_class_name,))


def volume_of(storage_class: str) -> PersistentVolume:
    """Return a volume of a class."""
    return PersistentVolume(spec=PersistentVolumeSpec(storage_class_name=storage_class))


def test_only_written_objects_are_grouped_again() -> None:
    catalog = ObjectCatalog()
    for name in ("b", "a", "c"):
        catalog.put(name, volume_of("static"))
    groups = groups_by_class(catalog)
    for _ in range(2):
        assert list(groups.keys("static")) == ["b", "a", "c"]
    catalog.put("a", volume_of("later"))
    catalog.remove(PersistentVolume, "c")
    assert list(groups.keys("static")) == ["b"]
    assert list(groups.keys("later")) == ["a"]
    assert list(groups.keys("other")) == []
    assert groups.assigned == 4


def test_objects_are_grouped_after_more_writes_than_are_remembered() -> None:
    catalog = ObjectCatalog()
    groups = groups_by_class(catalog)
    assert list(groups.keys("static")) == []
    for _ in range(2 * catalog.REMEMBERED + 1):
        catalog.put("v", volume_of("static"))
    assert list(groups.keys("static")) == ["v"]
