"""The manifests for `bayplan schedule` in a cluster: the API accepts them, and the program their configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

from bayplan.cli.main import build_app
from bayplan.framework.configuration.loading import load_configuration
from tests.apiserver.serving import ask, serving

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "deploy"
ROLES = {"system:kube-scheduler", "system:volume-scheduler"}


def manifests() -> list[dict[str, Any]]:
    return [each for file in sorted(FOLDER.glob("*.yaml")) for each in yaml.safe_load_all(file.read_text()) if each]


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [each for each in manifests() if each["kind"] == kind]


def test_the_api_accepts_the_manifests_with_strict_validation() -> None:
    plurals = {
        "Namespace": "/api/v1/namespaces",
        "ServiceAccount": "/api/v1/namespaces/bayplan/serviceaccounts",
        "ConfigMap": "/api/v1/namespaces/bayplan/configmaps",
        "Deployment": "/apis/apps/v1/namespaces/bayplan/deployments",
        "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/bayplan/roles",
        "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/bayplan/rolebindings",
    }
    with serving() as server:
        for each in manifests():
            url = f"{server.url}{plurals[each['kind']]}?fieldValidation=Strict"
            status, body = ask(url, "POST", yaml.safe_dump(each).encode(), **{"Content-Type": "application/yaml"})
            assert status == 201, body


def test_the_service_account_has_all_roles_of_a_scheduler() -> None:
    [account] = of_kind("ServiceAccount")
    subject = {"kind": "ServiceAccount", "name": account["metadata"]["name"], "namespace": "bayplan"}
    assert all(binding["subjects"] == [subject] for binding in of_kind("ClusterRoleBinding") + of_kind("RoleBinding"))
    assert {binding["roleRef"]["name"] for binding in of_kind("ClusterRoleBinding")} == ROLES
    [deployment] = of_kind("Deployment")
    assert deployment["spec"]["template"]["spec"]["serviceAccountName"] == subject["name"]


def test_the_configuration_is_valid_and_its_lease_namespace_matches_the_role() -> None:
    [config] = of_kind("ConfigMap")
    found = load_configuration(config["data"]["config.yaml"])
    assert [profile.scheduler_name for profile in found.profiles] == ["bayplan"]
    assert found.declared.leader_election.leader_elect
    [role] = of_kind("Role")
    assert found.declared.leader_election.resource_namespace == role["metadata"]["namespace"]


def test_the_deployment_uses_valid_options_and_the_declared_port() -> None:
    [deployment] = of_kind("Deployment")
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    program, verb, *options = container["command"]
    assert (program, verb) == ("bayplan", "schedule")
    command = typer.main.get_command(build_app([verb]))
    known = {name for each in command.commands[verb].params for name in each.opts}  # type: ignore[attr-defined]
    assert {each for each in options if each.startswith("--")} <= known
    [port] = container["ports"]
    assert options[options.index("--port") + 1] == str(port["containerPort"])


@pytest.mark.parametrize("probe", ["livenessProbe", "readinessProbe"])
def test_probes_use_served_paths(probe: str) -> None:
    [deployment] = of_kind("Deployment")
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container[probe]["httpGet"]["path"] in ("/livez", "/readyz")
