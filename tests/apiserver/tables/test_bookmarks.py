"""Bookmarks in watches of tables: their rows show an object without values."""

from __future__ import annotations

import pytest

from tests.apiserver.client import Client, Document

_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_INITIAL = "watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"


def _row(client: Client, path: str, include: str = "") -> Document:
    events = client.get(f"{path}?{_INITIAL}&labelSelector=none%3Dfound{include}", accept=_TABLE).body
    assert isinstance(events, list)
    row: Document = events[0]["object"]["rows"][0]
    return row


@pytest.mark.parametrize(
    ("path", "want"),
    [
        ("/apis/storage.k8s.io/v1/storageclasses", ["", "", "Delete", "Immediate", False, "<unknown>"]),
        ("/apis/networking.k8s.io/v1/ingressclasses", ["", "", "<none>", "<unknown>"]),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles", ["", "0001-01-01T00:00:00Z"]),
        ("/apis/autoscaling/v1/horizontalpodautoscalers", ["", "/", "<none>", "<unset>", 0, 0, "<unknown>"]),
        (
            "/apis/batch/v1/cronjobs",
            ["", "", "<none>", "<unset>", 0, "<none>", "<unknown>", "", "", "<none>"],
        ),
        ("/apis/apps/v1/daemonsets", ["", 0, 0, 0, 0, 0, "<none>", "<unknown>", "", "", "<none>"]),
        (
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
            ["", "", "<unset>", "<unknown>"],
        ),
    ],
)
def test_cells_of_a_bookmark(path: str, want: list[object]) -> None:
    assert _row(Client(), path)["cells"] == want


def test_the_object_of_a_bookmark_is_complete() -> None:
    row = _row(Client(), "/api/v1/limitranges", "&includeObject=Object")
    assert isinstance(row["object"], dict)
    assert row["object"]["spec"] == {"limits": None}


def test_the_end_of_the_initial_events_is_always_included() -> None:
    row = _row(Client(), "/api/v1/configmaps", "&includeObject=None")
    assert isinstance(row["object"], dict)
    assert row["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
