"""What of the source's objects is left out, and what is put in its place."""

from __future__ import annotations

import pytest

from bayplan.base.plain_data import Document
from bayplan.sync.document import items, part
from bayplan.sync.followed_kinds import BY_PLURAL, ObjectRef
from bayplan.sync.translation import translate
from tests.sync.world import pod

TOKEN: Document = {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
CERTIFICATE: Document = {"configMap": {"name": "kube-root-ca.crt"}}


class Nothing:
    """A cluster here that has nothing."""

    def uid_of(self, ref: ObjectRef, source_uid: str) -> str | None:
        """Return None."""
        return None

    def keeps_node(self, source_uid: str) -> bool:
        """Return False."""
        return False


def volume(name: str, *sources: Document) -> Document:
    return {"name": name, "projected": {"sources": list(sources)}}


@pytest.mark.parametrize(
    ("volumes", "want"),
    [
        pytest.param([volume("kube-api-access-x7k2p", TOKEN, CERTIFICATE)], [], id="what admission adds goes"),
        pytest.param(
            [volume("kube-api-access-x7k2p", CERTIFICATE)], ["kube-api-access-x7k2p"], id="one without a token stays"
        ),
        pytest.param([volume("own", TOKEN)], ["own"], id="one that the user has named stays"),
        pytest.param(
            [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}, volume("kube-api-access-x7k2p", TOKEN)],
            ["data"],
            id="others stay",
        ),
    ],
)
def test_volumes_with_the_token_of_a_service_account_are_left_out_with_their_mounts(
    volumes: list[Document], want: list[str]
) -> None:
    mounts = [{"name": each["name"], "mountPath": f"/{each['name']}"} for each in volumes]
    containers = [{"name": "main", "image": "app:1", "volumeMounts": mounts}]
    source = pod("p", volumes=volumes, containers=containers, initContainers=containers)
    spec = part(translate(BY_PLURAL["pods"], source, Nothing()), "spec")
    assert [each["name"] for each in items(spec, "volumes")] == want
    for kind in ("containers", "initContainers"):
        assert [each["name"] for each in items(items(spec, kind)[0], "volumeMounts")] == want
    assert part(source, "spec")["volumes"] == volumes
