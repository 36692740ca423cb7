"""Headers with which a client acts as a different user."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from bayplan.apiserver.http.application import Application
from bayplan.conformance.in_process import send
from tests.apiserver.client import Client, Document

_REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_REVIEW = b'{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}'
_EVERYONE = "system:authenticated"


def _sent(path: str, body: bytes, headers: dict[str, str]) -> tuple[int, Document]:
    """Return the status and document of the answer to a create with these headers."""
    application = Application(Client().api)
    answer = asyncio.run(send(application, "POST", path, {"Content-Type": "application/json", **headers}, body))
    return cast("int", answer["status"]), cast("Document", answer["body"])


@pytest.mark.parametrize(
    ("headers", "want"),
    [
        pytest.param(
            {}, {"username": "admin", "uid": "admin", "groups": ["system:masters", _EVERYONE]}, id="no header"
        ),
        pytest.param({"Impersonate-User": "eve"}, {"username": "eve", "groups": [_EVERYONE]}, id="a user"),
        pytest.param(
            {"Impersonate-User": "eve", "Impersonate-Group": "devs", "Impersonate-Uid": "7"},
            {"username": "eve", "uid": "7", "groups": ["devs", _EVERYONE]},
            id="a group and a uid",
        ),
        pytest.param(
            {"Impersonate-User": "eve", "Impersonate-Extra-E.com%2fScope": "a", "Impersonate-Extra-%zz": "b"},
            {"username": "eve", "groups": [_EVERYONE], "extra": {"%zz": ["b"], "e.com/scope": ["a"]}},
            id="keys of extra values are decoded if possible",
        ),
        pytest.param(
            {"Impersonate-User": "system:anonymous"},
            {"username": "system:anonymous", "groups": ["system:unauthenticated"]},
            id="the anonymous user",
        ),
        pytest.param(
            {"Impersonate-User": "eve", "Impersonate-Group": "system:unauthenticated"},
            {"username": "eve", "groups": ["system:unauthenticated"]},
            id="a group replaces that of all users",
        ),
        pytest.param(
            {"Impersonate-User": "system:serviceaccount:dev:robot"},
            {
                "username": "system:serviceaccount:dev:robot",
                "groups": ["system:serviceaccounts", "system:serviceaccounts:dev", _EVERYONE],
            },
            id="a service account has groups",
        ),
        pytest.param(
            {"Impersonate-User": "system:serviceaccount:dev:robot", "Impersonate-Group": "x"},
            {"username": "system:serviceaccount:dev:robot", "groups": ["x", _EVERYONE]},
            id="a service account with requested groups",
        ),
        pytest.param(
            {"Impersonate-User": "system:serviceaccount:Dev:robot"},
            {"username": "system:serviceaccount:Dev:robot", "groups": [_EVERYONE]},
            id="an invalid name of a service account",
        ),
        pytest.param(
            {"Impersonate-User": ""},
            {"username": "admin", "uid": "admin", "groups": ["system:masters", _EVERYONE]},
            id="an empty name",
        ),
    ],
)
def test_the_headers_determine_the_user(headers: dict[str, str], want: Document) -> None:
    status, found = _sent(_REVIEWS, _REVIEW, headers)
    assert (status, found["status"]) == (201, {"userInfo": want})


@pytest.mark.parametrize(
    ("headers", "want"),
    [
        pytest.param(
            {"Impersonate-Group": "a"},
            'UID:"", Groups:[]string{"a"}, Extra:map[string][]string(nil)',
            id="a group",
        ),
        pytest.param(
            {"Impersonate-Uid": "1", "Impersonate-Extra-B": "c"},
            'UID:"1", Groups:[]string(nil), Extra:map[string][]string{"b":[]string{"c"}}',
            id="a uid and an extra value",
        ),
    ],
)
def test_a_user_name_is_required(headers: dict[str, str], want: str) -> None:
    status, found = _sent(_REVIEWS, _REVIEW, headers)
    text = f'requested &user.DefaultInfo{{Name:"", {want}}} without impersonating a user name'
    assert (status, found["message"]) == (400, text)
