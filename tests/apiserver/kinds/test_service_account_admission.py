"""Pods under the admission plugin ServiceAccount: the account that they need, its token, its secrets."""

from __future__ import annotations

from typing import Any, cast

import pytest

from bayplan.base.plain_data import Document
from tests.apiserver.client import STRATEGIC, Client, pod

PODS = "/api/v1/namespaces/default/pods"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
PLACE = "/var/run/secrets/kubernetes.io/serviceaccount"


@pytest.fixture
def client() -> Client:
    made = Client()
    made.backend.admits_service_accounts = True
    made.post(ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
    return made


def created(client: Client, spec: Document | None = None, name: str = "p") -> dict[str, Any]:
    """Create a pod and return its spec."""

    def change(body: Document) -> None:
        body["spec"] = {**cast("Document", body["spec"]), **(spec or {})}

    answer = client.post(PODS, pod(name, change))
    assert answer.status == 201, answer.body
    return cast("dict[str, Any]", answer.document["spec"])


def test_pods_mount_no_token_by_default() -> None:
    assert "volumes" not in created(Client())


def test_a_pod_mounts_the_token_of_the_default_service_account(client: Client) -> None:
    spec = created(client)
    assert spec["serviceAccountName"] == spec["serviceAccount"] == "default"
    (volume,) = spec["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    assert [list(source) for source in volume["projected"]["sources"]] == [
        ["serviceAccountToken"],
        ["configMap"],
        ["downwardAPI"],
    ]
    mounts = [mount for container in spec["containers"] for mount in container["volumeMounts"]]
    assert {"name": volume["name"], "readOnly": True, "mountPath": PLACE} in mounts


def test_pods_of_one_template_get_unique_token_volume_names(client: Client) -> None:
    names = {created(client, name=f"p{number}")["volumes"][0]["name"] for number in range(4)}
    assert len(names) == 4


def test_a_pod_with_an_unknown_service_account_is_refused(client: Client) -> None:
    answer = client.post(PODS, pod("p", lambda body: cast("Document", body["spec"]).update(serviceAccountName="robot")))
    assert answer.status == 403
    want = 'pods "p" is forbidden: error looking up service account default/robot: serviceaccount "robot" not found'
    assert answer.at("message") == want


@pytest.mark.parametrize("by_pod", [pytest.param(True, id="the pod"), pytest.param(False, id="the account")])
def test_the_token_is_not_mounted_if_automount_is_disabled(client: Client, by_pod: bool) -> None:
    account: Document = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "quiet"}}
    client.post(ACCOUNTS, account if by_pod else {**account, "automountServiceAccountToken": False})
    more: Document = {"automountServiceAccountToken": False} if by_pod else {}
    assert "volumes" not in created(client, {"serviceAccountName": "quiet", **more})


def test_an_existing_mount_at_the_token_path_is_preserved(client: Client) -> None:
    container = {"name": "a", "image": "b", "volumeMounts": [{"name": "own", "mountPath": PLACE}]}
    spec = created(client, {"containers": [container], "volumes": [{"name": "own", "emptyDir": {}}]})
    assert [volume["name"] for volume in spec["volumes"]] == ["own"]


def test_pods_get_the_image_pull_secrets_of_their_service_account(client: Client) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "puller"}}
    client.post(ACCOUNTS, {**account, "imagePullSecrets": [{"name": "hub"}]})
    assert created(client, {"serviceAccountName": "puller"})["imagePullSecrets"] == [{"name": "hub"}]


LIMITED: Document = {
    "apiVersion": "v1",
    "kind": "ServiceAccount",
    "metadata": {"name": "limited", "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}},
    "secrets": [{"name": "known"}],
    "imagePullSecrets": [{"name": "pull"}],
}


def _env(secret: str) -> Document:
    return {"name": "A", "valueFrom": {"secretKeyRef": {"name": secret, "key": "k"}}}


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"volumes": [{"name": "v", "secret": {"secretName": "known"}}]}, ""),
        ({"volumes": [{"name": "v", "secret": {"secretName": "other"}}]}, 'volume with secret.secretName="other"'),
        ({"containers": [{"name": "c", "image": "i", "env": [_env("known")]}]}, ""),
        (
            {"containers": [{"name": "c", "image": "i", "env": [_env("other")]}]},
            'container c with envVar A referencing secret.secretName="other"',
        ),
        (
            {"initContainers": [{"name": "c2", "image": "i", "envFrom": [{"secretRef": {"name": "other"}}]}]},
            'init container c2 with envFrom referencing secret.secretName="other"',
        ),
        ({"imagePullSecrets": [{"name": "pull"}]}, ""),
        ({"imagePullSecrets": [{"name": "pull"}, {"name": "other"}]}, 'imagePullSecrets[1].name="other"'),
    ],
)
def test_an_account_can_limit_the_secrets_of_its_pods(client: Client, spec: Document, why: str) -> None:
    client.post(ACCOUNTS, LIMITED)

    def change(body: Document) -> None:
        body["spec"] = {**cast("Document", body["spec"]), **spec, "serviceAccountName": "limited"}

    answer = client.post(PODS, pod("p", change))
    assert answer.status == (403 if why else 201)
    assert f"{why} is not allowed because service account limited" in str(answer.at("message")) or not why


def test_an_account_can_limit_the_secrets_of_ephemeral_containers(client: Client) -> None:
    client.post(ACCOUNTS, LIMITED)
    created(client, {"serviceAccountName": "limited"})
    for secret, status in (("other", 403), ("known", 200)):
        added: Document = {"spec": {"ephemeralContainers": [{"name": "e", "image": "i", "env": [_env(secret)]}]}}
        answer = client.patch(f"{PODS}/p/ephemeralcontainers", added, STRATEGIC)
        assert answer.status == status, answer.body


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"serviceAccountName": "default"}, "service accounts"),
        ({"imagePullSecrets": [{"name": "pull"}]}, "secrets"),
        ({"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "s"}}]}}]}, "secrets"),
        ({"volumes": [{"name": "v", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "s"}}}]}, "secrets"),
        ({"volumes": [{"name": "v", "emptyDir": {}}]}, ""),
    ],
)
def test_mirror_pods_have_neither_accounts_nor_secrets(client: Client, spec: Document, why: str) -> None:
    def change(body: Document) -> None:
        cast("Document", body["metadata"])["annotations"] = {"kubernetes.io/config.mirror": "x"}
        body["spec"] = {**cast("Document", body["spec"]), "nodeName": "n", **spec}

    answer = client.post(PODS, pod("p", change))
    assert answer.status == (403 if why else 201), answer.body
    assert f"a mirror pod may not reference {why}" in str(answer.at("message")) or not why
