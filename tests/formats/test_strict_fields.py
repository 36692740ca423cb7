"""The fast search for unknown fields, which decodes the text, agrees with the walk over the document."""

from __future__ import annotations

import json

import pytest

from bayplan.formats import schema as schema_module
from bayplan.formats.schema import MIN_DECODER_BYTES, schema, unknown_fields

PADDING = b" " * MIN_DECODER_BYTES
"""Spaces around a document, with which it is large enough to be decoded."""

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(POD, id="no unknown field"),
        pytest.param({**POD, "spec": {"nodeNam": "a"}}, id="in an object"),
        pytest.param({**POD, "spec": {"containers": [{"name": "c", "imag": "x"}, None]}}, id="in a list"),
        pytest.param({**POD, "spec": {"volumes": "none"}}, id="text instead of a list"),
        pytest.param({**POD, "spec": None, "statu": {}}, id="null instead of an object"),
        pytest.param({**POD, "metadata": {"managedFields": [{"fieldsV1": {"f:any": {}}}]}}, id="any object"),
        pytest.param(
            {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": {"x": 1}},
            id="a type that contains itself",
        ),
    ],
)
def test_fast_and_slow_search_find_the_same_unknown_fields(document: dict[str, object]) -> None:
    assert unknown_fields(document, PADDING + json.dumps(document).encode()) == unknown_fields(document)


def test_fast_and_slow_search_agree_for_every_kind() -> None:
    for name in schema().kinds:
        api_version, _, kind = name.rpartition("/")
        document = {"apiVersion": api_version, "kind": kind, "metadata": {"nam": "x"}}
        assert unknown_fields(document, PADDING + json.dumps(document).encode()) == unknown_fields(document)


def test_only_large_inputs_make_a_decoder() -> None:
    raw = json.dumps(POD).encode()
    schema_module._bytes_seen.clear()
    schema_module._strict_decoder.cache_clear()
    unknown_fields(POD, raw)
    assert schema_module._strict_decoder.cache_info().misses == 0
    unknown_fields(POD, PADDING + raw)
    assert schema_module._strict_decoder.cache_info().misses == 1
