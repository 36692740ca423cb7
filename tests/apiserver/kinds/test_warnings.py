"""Warnings that the API returns with an object."""

from __future__ import annotations

import pytest

from tests.apiserver.client import MERGE, Client, Document

_PODS = "/api/v1/namespaces/default/pods"
_BATCH = "/apis/batch/v1/namespaces/default/jobs"


def _warnings(method: str, path: str, document: object, client: Client | None = None) -> list[str]:
    answer = (client or Client()).call(method, path, document)
    return [
        value.partition('- "')[2].removesuffix('"').replace('\\"', '"')
        for name, value in answer.headers
        if name == "warning"
    ]


def _pod(container: Document | None = None, annotations: Document | None = None, **spec: object) -> Document:
    metadata: Document = {"name": "p", "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "x", **(container or {})}], **spec}}


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(
            _pod(nodeSelector={"beta.kubernetes.io/arch": "x"}),
            'spec.nodeSelector[beta.kubernetes.io/arch]: deprecated since v1.14; use "kubernetes.io/arch" instead',
            id="an old label in the node selector",
        ),
        pytest.param(
            _pod(volumes=[{"name": "v", "rbd": {"monitors": ["m"], "image": "i"}}]),
            "spec.volumes[0].rbd: deprecated in v1.28, non-functional in v1.31+",
            id="a volume type that is no longer supported",
        ),
        pytest.param(
            _pod({"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}),
            'spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply',
            id="a variable that is set twice",
        ),
        pytest.param(
            _pod({"ports": [{"containerPort": 80}, {"containerPort": 80}]}),
            "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]",
            id="a port twice",
        ),
        pytest.param(
            _pod({"ports": [{"containerPort": 80}, {"containerPort": 80, "hostPort": 8080}]}),
            "spec.containers[0].ports[1]: overlapping port definition with spec.containers[0].ports[0]",
            id="a port with and without a host port",
        ),
        pytest.param(
            _pod({"resources": {"requests": {"memory": "1500m"}}}),
            'spec.containers[0].resources.requests[memory]: fractional byte value "1500m" is invalid, must be an integer',
            id="half a byte",
        ),
        pytest.param(
            _pod({"resources": {"requests": {"memory": "9000000Gi"}}}),
            'spec.containers[0].resources.requests[memory]: fractional byte value "9000000Gi" is invalid, must be an integer',
            id="more bytes than thousandths of which fit into an int64",
        ),
        pytest.param(
            _pod(annotations={"scheduler.alpha.kubernetes.io/critical-pod": ""}),
            "metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in v1.16+; "
            'use the "priorityClassName" field instead',
            id="an old annotation",
        ),
        pytest.param(
            _pod(imagePullSecrets=[{"name": ""}]),
            'spec.imagePullSecrets[0].name: invalid empty name ""',
            id="an empty name",
        ),
    ],
)
def test_pods_with_problems_return_a_warning(pod: Document, want: str) -> None:
    assert _warnings("POST", _PODS, pod) == [want]


def test_a_variable_referring_to_its_previous_value_returns_no_warning() -> None:
    assert not _warnings("POST", _PODS, _pod({"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}]}))


def test_each_pod_of_a_cached_template_returns_the_warning() -> None:
    client = Client()
    pod = _pod(nodeSelector={"beta.kubernetes.io/os": "x"})

    found = [_warnings("POST", _PODS, {**pod, "metadata": {"name": f"p{number}"}}, client) for number in range(4)]

    assert [len(each) for each in found] == [1, 1, 1, 1]


def test_only_spec_changes_repeat_the_warnings_of_a_template() -> None:
    client = Client()
    path = "/apis/apps/v1/namespaces/default/deployments"
    template: Document = {
        "metadata": {"labels": {"a": "b"}},
        "spec": _pod(nodeSelector={"beta.kubernetes.io/os": "x"})["spec"],
    }
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    created = _warnings("POST", path, {"metadata": {"name": "d"}, "spec": spec}, client)

    label = client.call("PATCH", f"{path}/d", {"metadata": {"labels": {"x": "y"}}}, content_type=MERGE)
    scaled = client.call("PATCH", f"{path}/d", {"spec": {"replicas": 2}}, content_type=MERGE)

    assert len(created) == 1
    assert ("warning" in dict(label.headers), "warning" in dict(scaled.headers)) == (False, True)


@pytest.mark.parametrize(
    ("query", "warned"),
    [
        pytest.param("", True, id="pods stay unless the deletion requests otherwise"),
        pytest.param("?propagationPolicy=Background", False, id="a policy is given"),
    ],
)
def test_deleting_a_job_without_a_propagation_policy_returns_a_warning(query: str, *, warned: bool) -> None:
    client = Client()
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}
    client.call("POST", _BATCH, {"metadata": {"name": "j"}, "spec": {"template": template}})

    assert bool(_warnings("DELETE", f"{_BATCH}/j{query}", None, client)) is warned


def test_every_endpoints_response_has_a_deprecation_warning() -> None:
    path = "/api/v1/namespaces/default/endpoints"
    want = ["v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"]

    assert _warnings("GET", path, None) == want
    assert _warnings("GET", f"{path}/absent", None) == want


_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/c"
_DEPRECATED = f'metadata.annotations[{_APP_ARMOR}]: deprecated since v1.30; use the "appArmorProfile" field instead'


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(_pod(annotations={_APP_ARMOR: "unconfined"}, restartPolicy="X"), [_DEPRECATED], id="invalid"),
        pytest.param(_pod(annotations={_APP_ARMOR: "nonsense"}), [_DEPRECATED], id="an invalid profile"),
        pytest.param(
            _pod(annotations={_APP_ARMOR: "unconfined"}, priorityClassName="x"), [], id="refused by admission"
        ),
        pytest.param(_pod(nodeSelector={"beta.kubernetes.io/os": "x"}, restartPolicy="X"), [], id="another warning"),
    ],
)
def test_an_invalid_pod_gets_only_the_warnings_of_its_preparation(pod: Document, want: list[str]) -> None:
    assert _warnings("POST", _PODS, pod) == want


def test_an_object_whose_name_is_taken_gets_all_warnings() -> None:
    client, pod = Client(), _pod(nodeSelector={"beta.kubernetes.io/os": "x"})
    first = _warnings("POST", _PODS, pod, client)
    assert first
    assert _warnings("POST", _PODS, pod, client) == first


@pytest.mark.parametrize(("name", "count"), [(None, 1), ("nginx", 0)])
def test_the_old_ingress_class_is_only_reported_without_the_new_one(name: str | None, count: int) -> None:
    spec: Document = {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}
    spec |= {"ingressClassName": name} if name else {}
    body = {"metadata": {"name": "i", "annotations": {"kubernetes.io/ingress.class": "nginx"}}, "spec": spec}
    assert len(_warnings("POST", "/apis/networking.k8s.io/v1/namespaces/default/ingresses", body)) == count


def test_an_update_of_a_stateful_set_names_the_spec_of_its_claims() -> None:
    client, path = Client(), "/apis/apps/v1/namespaces/default/statefulsets"
    claim = {
        "metadata": {"name": "v"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1m"}}},
    }
    spec = {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        "volumeClaimTemplates": [claim],
    }
    text = 'fractional byte value "1m" is invalid, must be an integer'

    assert _warnings("POST", path, {"metadata": {"name": "s"}, "spec": spec}, client) == [
        f"spec.volumeClaimTemplates[0].resources.requests[storage]: {text}"
    ]
    labels = client.patch(f"{path}/s", {"metadata": {"labels": {"x": "y"}}})
    assert [value for name, value in labels.headers if name == "warning"] == [
        f'299 - "spec.volumeClaimTemplates[0].Spec.resources.requests[storage]: {text}"'.replace('"1m"', '\\"1m\\"')
    ]


_CLAIM_SPEC: Document = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1m"}}}


def test_warnings_of_a_template_are_in_upstreams_order() -> None:
    volumes = [
        {"name": "v", "projected": {"sources": [{}]}},
        {"name": "w", "ephemeral": {"volumeClaimTemplate": {"spec": _CLAIM_SPEC}}},
    ]
    container = {"name": "c", "image": "i", "resources": {"limits": {"memory": "1m"}}}
    spec: Document = {
        "containers": [container, {"name": "d", "image": "i"}],
        "volumes": volumes,
        "dnsConfig": {"nameservers": ["::01"]},
        "hostAliases": [{"ip": "::0", "hostnames": ["h"]}],
    }
    notes = {_APP_ARMOR: "unconfined", f"{_APP_ARMOR[:-1]}d": "unconfined"}
    template = {"metadata": {"labels": {"a": "b"}, "annotations": notes}, "spec": spec}
    body = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    fraction = 'fractional byte value "1m" is invalid, must be an integer'

    assert _warnings("POST", "/apis/apps/v1/namespaces/default/daemonsets", body) == [
        f"spec.template.spec.volumes[1].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]: {fraction}",
        'volume "v" (Projected) has no sources provided',
        f"spec.template.{_DEPRECATED}",
        f"spec.template.spec.containers[0].resources.limits[memory]: {fraction}",
        f"spec.template.{_DEPRECATED.replace('io/c', 'io/d')}",
        'spec.template.spec.dnsConfig.nameservers[0]: IPv6 address "::01" should be in RFC 5952 canonical format ("::1")',
        'spec.template.spec.hostAliases[0].ip: IPv6 address "::0" should be in RFC 5952 canonical format ("::")',
    ]


def test_the_storage_os_volume_has_another_name_in_warnings() -> None:
    volume = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageos": {"volumeName": "v"}}
    want = ["spec.storageOS: deprecated in v1.22, non-functional in v1.25+"]

    assert _warnings("POST", "/api/v1/persistentvolumes", {"metadata": {"name": "v"}, "spec": volume}) == want


def test_a_mapped_address_is_not_standard() -> None:
    service: Document = {"ports": [{"port": 80}], "loadBalancerIP": "::ffff:1.2.3.4"}
    text = 'spec.loadBalancerIP: non-standard IP address "::ffff:1.2.3.4" is invalid: use "1.2.3.4"'

    answer = _warnings("POST", "/api/v1/namespaces/default/services", {"metadata": {"name": "s"}, "spec": service})
    assert answer == [text]


@pytest.mark.parametrize(("kind", "count"), [("daemonsets", 0), ("deployments", 1)])
def test_a_daemon_set_only_gets_warnings_when_its_template_changes(kind: str, count: int) -> None:
    client, path = Client(), f"/apis/apps/v1/namespaces/default/{kind}"
    pod_spec = {"containers": [{"name": "c", "image": "i"}], "nodeSelector": {"beta.kubernetes.io/os": "x"}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod_spec}
    body = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}

    assert len(_warnings("POST", path, body, client)) == 1
    changed = client.patch(f"{path}/d", {"spec": {"minReadySeconds": 5}})
    assert len([name for name, _ in changed.headers if name == "warning"]) == count
    changed = client.patch(f"{path}/d", {"spec": {"template": {"spec": {"hostNetwork": True}}}})
    assert len([name for name, _ in changed.headers if name == "warning"]) == 1
