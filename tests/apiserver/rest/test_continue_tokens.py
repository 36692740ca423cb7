"""Malformed continue tokens: the errors of Go's decoder of base64 without padding."""

import pytest

from bayplan.apiserver.model.errors import ApiError
from bayplan.apiserver.rest.listing import decode_continue, encode_continue
from tests.apiserver.client import Client


@pytest.mark.parametrize(
    ("token", "want"),
    [
        pytest.param("e30=", "illegal base64 data at input byte 3", id="padding"),
        pytest.param("abcde", "illegal base64 data at input byte 4", id="one character too many"),
        pytest.param("a!b", "illegal base64 data at input byte 1", id="another character"),
        pytest.param("a+b", "illegal base64 data at input byte 1", id="the standard alphabet"),
        pytest.param("e30", "server does not recognize this encoded version ", id="no version"),
    ],
)
def test_a_malformed_token_is_refused(token: str, want: str) -> None:
    with pytest.raises(ApiError) as caught:
        decode_continue(token)

    assert str(caught.value) == f"invalid continue token: continue key is not valid: {want}"


def test_line_breaks_are_ignored() -> None:
    token = encode_continue(5, "a/b")

    assert decode_continue(f"{token[:5]}\n{token[5:]}") == decode_continue(token)


def test_a_token_with_a_revision_of_the_future_is_refused() -> None:
    client = Client()
    current = int(str(client.get("/api/v1/configmaps").at("metadata.resourceVersion")))

    found = client.get(f"/api/v1/configmaps?limit=2&continue={encode_continue(current + 1, 'a/b')}")

    assert found.status == 504
    assert str(found.at("message")).startswith(
        f"Timeout: Too large resource version: {current + 1}, current: {current}"
    )
