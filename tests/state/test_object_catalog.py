"""The catalog reports which objects were written since a version."""

from bayplan.objects.storage import CSIDriver, PersistentVolume
from bayplan.state.object_catalog import ObjectCatalog


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
