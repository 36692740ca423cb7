"""Path elements of field sets that clients send."""

from __future__ import annotations

import pytest

from bayplan.apiserver.fields.elements import element_text


@pytest.mark.parametrize(
    ("element", "want"),
    [
        pytest.param(".", ".", id="the node itself"),
        pytest.param("f:a b", "f:a b", id="a field"),
        pytest.param("i:01", "i:1", id="an index with a leading zero"),
        pytest.param("v:1e3", "v:1000", id="a number with an exponent"),
        pytest.param("v: 1.0 ", "v:1", id="a number with blanks"),
        pytest.param('v:"<"', 'v:"\\u003c"', id="a text that Go escapes"),
        pytest.param('k:{"b":1,"a":"x"}', 'k:{"a":"x","b":1}', id="keys out of order"),
        pytest.param("v:9223372036854775807", "v:9223372036854775807", id="a number of 64 bits"),
        pytest.param("v:9223372036854775808", "v:9223372036854776000", id="a number beyond 64 bits"),
        pytest.param("k:null", "k:{}", id="no keys"),
        pytest.param("q:1", "", id="an unknown type"),
    ],
)
def test_an_element_is_written_as_upstream_writes_it(element: str, want: str) -> None:
    assert element_text(element) == want


@pytest.mark.parametrize(
    "element", ["", "x", "ab:1", "i:x", "i:99999999999999999999", "v:NaN", "v:1e400", f"v:{'9' * 5000}", "v:", "k:[]"]
)
def test_a_malformed_element_is_refused(element: str) -> None:
    with pytest.raises(ValueError):
        element_text(element)
