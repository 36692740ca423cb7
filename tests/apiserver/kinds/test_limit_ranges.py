"""Limit ranges: defaults for containers without requests or limits, and refusals in upstream's words."""

from __future__ import annotations

import pytest

from tests.apiserver.client import PODS, Client, Document, pod

RANGES = "/api/v1/namespaces/default/limitranges"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


def limited(*limits: Document) -> Client:
    client = Client()
    assert client.post(RANGES, {"metadata": {"name": "r"}, "spec": {"limits": list(limits)}}).status == 201
    return client


def pod_with(requests: Document | None, limits: Document | None, **more: object) -> Document:
    def change(document: Document) -> None:
        resources = {name: value for name, value in (("requests", requests), ("limits", limits)) if value is not None}
        container: Document = {"name": "c", "image": "x", "resources": resources}
        document["spec"] = {"containers": [container], **more}

    return pod("p", change)


def test_limit_ranges_set_default_requests_and_limits() -> None:
    client = limited({"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "500m", "memory": "1Gi"}})
    init: Document = {"name": "i", "image": "x"}
    for name in ("one", "two"):
        # The second pod has the same spec, so its defaults come from the cache.
        document = pod_with({"cpu": "200m"}, None, initContainers=[init])
        document["metadata"] = {"name": name}
        answer = client.post(PODS, document)
        assert answer.at("spec.containers.0.resources") == {
            "requests": {"cpu": "200m", "memory": "1Gi"},
            "limits": {"cpu": "1"},
        }
        assert answer.at("spec.initContainers.0.resources.requests") == {"cpu": "500m", "memory": "1Gi"}
        assert answer.at("status.qosClass") == "Burstable"
        reported = answer.at("metadata.annotations")
        assert reported == {
            "kubernetes.io/limit-ranger": "LimitRanger plugin set: memory request for container c; cpu limit for container c; "
            "cpu, memory request for init container i; cpu limit for init container i"
        }
    client.delete(f"{RANGES}/r")
    assert client.post(PODS, pod_with({"cpu": "200m"}, None, initContainers=[init])).at("metadata.annotations") is None


@pytest.mark.parametrize(
    ("limit", "requests", "limits", "want"),
    [
        pytest.param(
            {"type": "Container", "min": {"cpu": "100m"}},
            {"cpu": "50m"},
            None,
            "minimum cpu usage per Container is 100m, but request is 50m",
            id="too little",
        ),
        pytest.param(
            {"type": "Pod", "min": {"cpu": "100m"}},
            None,
            None,
            "minimum cpu usage per Pod is 100m.  No request is specified",
            id="nothing although there is a minimum",
        ),
        pytest.param(
            {"type": "Pod", "max": {"cpu": "1"}},
            {"cpu": "1"},
            {"cpu": "2"},
            "maximum cpu usage per Pod is 1, but limit is 2",
            id="too much",
        ),
        pytest.param(
            {"type": "Pod", "max": {"cpu": "1"}},
            {"cpu": "1"},
            None,
            "maximum cpu usage per Pod is 1.  No limit is specified",
            id="no limit although there is a maximum",
        ),
        pytest.param(
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}},
            {"cpu": "100m"},
            {"cpu": "300m"},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
            id="a limit far above the request",
        ),
        pytest.param(
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}},
            None,
            None,
            "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
            id="no request although there is a ratio",
        ),
        pytest.param({"type": "Pod", "max": {"cpu": "1"}}, {"cpu": "1"}, {"cpu": "1"}, "", id="exactly the maximum"),
        pytest.param({"type": "PersistentVolumeClaim", "max": {"storage": "1"}}, None, None, "", id="of another kind"),
    ],
)
def test_pods_violating_a_limit_range_are_refused(
    limit: Document, requests: Document | None, limits: Document | None, want: str
) -> None:
    client = limited(limit)
    for _ in range(2):
        answer = client.post(PODS, pod_with(requests, limits))
        if want:
            assert (answer.status, answer.at("message")) == (403, f'pods "p" is forbidden: {want}')
    assert bool(want) != (client.get(f"{PODS}/p").status == 200)


def test_pod_limits_include_init_containers_and_sidecars_in_start_order() -> None:
    client = limited({"type": "Pod", "max": {"cpu": "2"}})
    beside: Document = {"name": "s", "image": "x", "restartPolicy": "Always", "resources": {"limits": {"cpu": "1"}}}
    first: Document = {"name": "i", "image": "x", "resources": {"limits": {"cpu": "1500m"}}}
    answer = client.post(PODS, pod_with(None, {"cpu": "500m"}, initContainers=[beside, first]))
    assert answer.at("message") == 'pods "p" is forbidden: maximum cpu usage per Pod is 2, but limit is 2500m'
    assert client.post(PODS, pod_with(None, {"cpu": "500m"}, initContainers=[first, beside])).status == 201


def test_claims_outside_the_limit_range_are_refused() -> None:
    client = limited({"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}})

    def claim(storage: str) -> Document:
        spec: Document = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
        return {"metadata": {"name": "v"}, "spec": spec}

    answer = client.post(CLAIMS, claim("3Gi"))
    text = "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi"
    assert (answer.status, answer.at("message")) == (403, f'persistentvolumeclaims "v" is forbidden: {text}')
    assert client.post(CLAIMS, claim("2Gi")).status == 201
