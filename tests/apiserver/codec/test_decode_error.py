"""Which of several decoding errors Go reports."""

from bayplan.apiserver.codec.decode_error import _MAX_TYPE_ERRORS, DecodeError, reported
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


def test_at_most_a_few_values_of_the_wrong_type_are_skipped() -> None:
    many: Document = {f"a{number}": "x" for number in range(_MAX_TYPE_ERRORS)}
    assert error_of({**many, "bad": "z"}) == "malformed"
    assert "Spec.a0" in error_of({**many, "more": "y", "bad": "z"})
