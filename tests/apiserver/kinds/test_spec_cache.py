"""Specs of pods are cached only when they are sent a second time; pods with different specs use no cache memory."""

from __future__ import annotations

from bayplan.apiserver.kinds.spec_cache import CachedSpec, SpecCache
from bayplan.base.plain_data import Document


class Memory:
    """A cache of specs that counts the specs it has decoded."""

    def __init__(self) -> None:
        self.specs = SpecCache()
        self.decoded = 0

    def send(self, spec: Document) -> CachedSpec | None:
        def decode() -> Document:
            self.decoded += 1
            return dict(spec)

        return self.specs.get(spec, decode)


def test_a_spec_is_cached_when_it_is_sent_the_second_time() -> None:
    memory = Memory()
    assert memory.send({"hostname": "a"}) is None
    second, third = memory.send({"hostname": "a"}), memory.send({"hostname": "a"})
    assert second is not None
    assert third is not None
    assert second.facts is third.facts
    assert memory.decoded == 1


def test_the_cached_spec_excludes_the_node_name() -> None:
    memory = Memory()
    assert memory.send({"hostname": "a", "nodeName": "n1"}) is None
    found = memory.send({"hostname": "a", "nodeName": "n2"})
    assert found is not None
    assert found["nodeName"] == "n2"


def test_unique_specs_are_not_decoded_or_cached() -> None:
    memory = Memory()
    assert all(memory.send({"hostname": f"h{number}"}) is None for number in range(10_000))
    assert memory.decoded == 0


def test_a_spec_with_match_label_keys_is_never_cached() -> None:
    memory = Memory()
    spec: Document = {"topologySpreadConstraints": [{"matchLabelKeys": ["a"]}]}
    assert [memory.send(spec) for _ in range(3)] == [None, None, None]
