"""Tests of removed and replaced fields of the source's objects."""

from __future__ import annotations

import pytest

from bayplan.base.plain_data import Document, items, part
from bayplan.sync.followed_kinds import BY_PLURAL, ObjectRef
from bayplan.sync.merging import merge_object
from bayplan.sync.translation import translate
from tests.sync.follower_fixture import pod

TOKEN: Document = {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
CERTIFICATE: Document = {"configMap": {"name": "kube-root-ca.crt"}}


class Nothing:
    """An empty target."""

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
        pytest.param(
            [volume("kube-api-access-x7k2p", TOKEN, CERTIFICATE)], [], id="fields added by admission are removed"
        ),
        pytest.param(
            [volume("kube-api-access-x7k2p", CERTIFICATE)],
            ["kube-api-access-x7k2p"],
            id="a volume without a token stays",
        ),
        pytest.param([volume("own", TOKEN)], ["own"], id="a volume that the user named stays"),
        pytest.param(
            [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}, volume("kube-api-access-x7k2p", TOKEN)],
            ["data"],
            id="others stay",
        ),
    ],
)
def test_service_account_token_volumes_are_removed_with_their_mounts(volumes: list[Document], want: list[str]) -> None:
    mounts = [{"name": each["name"], "mountPath": f"/{each['name']}"} for each in volumes]
    containers = [{"name": "main", "image": "app:1", "volumeMounts": mounts}]
    source = pod("p", volumes=volumes, containers=containers, initContainers=containers)
    spec = part(translate(BY_PLURAL["pods"], source, Nothing()), "spec")
    assert [each["name"] for each in items(spec, "volumes")] == want
    for kind in ("containers", "initContainers"):
        assert [each["name"] for each in items(items(spec, kind)[0], "volumeMounts")] == want
    assert part(source, "spec")["volumes"] == volumes


@pytest.mark.parametrize(
    ("policy", "annotations", "want"),
    [
        pytest.param("Never", {}, "forever", id="a pod ends when it ends in the source"),
        pytest.param("OnFailure", {}, "forever", id="regardless of its action after a failure"),
        pytest.param("Never", {"bayplan.io/run-time": "5s"}, "5s", id="a run time of the source stays"),
        pytest.param("Always", {}, None, id="a pod that is always restarted has no default"),
    ],
)
def test_source_pods_get_no_default_run_time(policy: str, annotations: dict[str, str], want: str | None) -> None:
    source = pod("p", restartPolicy=policy)
    part(source, "metadata")["annotations"] = annotations
    found = translate(BY_PLURAL["pods"], source, Nothing())
    assert part(part(found, "metadata"), "annotations").get("bayplan.io/run-time") == want
    assert part(part(source, "metadata"), "annotations") == annotations


def test_a_local_pod_cidr_is_preserved() -> None:
    network: Document = {"podCIDR": "10.128.3.0/24", "podCIDRs": ["10.128.3.0/24"]}
    here: Document = {"metadata": {"name": "n"}, "spec": {**network, "unschedulable": True}}
    for theirs in ({}, {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]}):
        wanted: Document = {"metadata": {"name": "n"}, "spec": {**theirs, "providerID": "cloud:///n"}}
        assert merge_object(BY_PLURAL["nodes"], here, wanted)["spec"] == {**network, "providerID": "cloud:///n"}
