"""Which of several decoding errors Go reports."""

import pytest

from bayplan.apiserver.codec.decode_error import _MAX_TYPE_ERRORS, DecodeError, reported
from bayplan.apiserver.codec.shape import shape_of
from bayplan.apiserver.codec.unstructured import wrapped
from bayplan.base.plain_data import Document


def read(value: Document) -> None:
    """Fail at the first field: ``bad`` has a malformed value, all others have values of the wrong type."""
    for name in value:
        problem = DecodeError("malformed") if name == "bad" else DecodeError(value="string", go_type="int32")
        problem.inside("Spec", name)
        raise problem


def error_of(value: Document) -> str:
    try:
        read(value)
    except DecodeError as first:
        return str(reported(read, value, first))
    raise AssertionError("no error")


def test_an_error_that_stops_go_is_reported_before_values_of_the_wrong_type() -> None:
    assert error_of({"a": "x", "b": "y", "bad": "z"}) == "malformed"
    assert "Spec.a" in error_of({"a": "x", "b": "y"})


def test_go_stops_at_a_value_of_the_wrong_type_for_its_own_decoder() -> None:
    lease = {"acquireTime": 1, "renewTime": "bad"}
    with pytest.raises(
        DecodeError, match=r"cannot unmarshal number into Go struct field LeaseSpec.acquireTime of type string"
    ):
        _raise_reported("io.k8s.api.coordination.v1.LeaseSpec", {"leaseTransitions": "x", **lease})


def test_go_maps_are_converted_in_the_order_of_the_struct() -> None:
    name = "io.k8s.api.coordination.v1.LeaseSpec"
    found = wrapped(name, {"nope": 1, "renewTime": "x", "acquireTime": "y", "leaseDurationSeconds": 2**32 + 5})
    assert isinstance(found, dict)
    assert list(found) == ["leaseDurationSeconds", "acquireTime", "renewTime", "nope"]
    assert found["leaseDurationSeconds"] == 5


def _raise_reported(type_name: str, value: Document) -> None:
    read = shape_of(type_name).read
    try:
        read(value)
    except DecodeError as first:
        raise reported(read, value, first) from None


def test_at_most_a_few_values_of_the_wrong_type_are_skipped() -> None:
    many: Document = {f"a{number}": "x" for number in range(_MAX_TYPE_ERRORS)}
    assert error_of({**many, "bad": "z"}) == "malformed"
    assert "Spec.a0" in error_of({**many, "more": "y", "bad": "z"})
