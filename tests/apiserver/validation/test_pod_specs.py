"""Rules about the specs of pods that relate several fields (compared with kube-apiserver v1.36.3)."""

from __future__ import annotations

import pytest

from bayplan.objects.pod_amounts import PodAmounts
from bayplan.objects.quantity import Quantity
from tests.apiserver.client import MERGE, PODS, Client, Document, pod

_AGGREGATE = "must be greater than or equal to aggregate container requests of"


@pytest.mark.parametrize(
    ("requests", "of_container", "want"),
    [
        pytest.param(
            {"cpu": "1"}, {"cpu": "2"}, f'Invalid value: "1": {_AGGREGATE} 2', id="the container requests more"
        ),
        pytest.param(
            {"memory": "1Mi"}, {"memory": "2Mi"}, f'Invalid value: "1Mi": {_AGGREGATE} 2Mi', id="in its format"
        ),
        pytest.param(
            {"cpu": "-1"},
            {"cpu": "0"},
            f'Invalid value: "-1": {_AGGREGATE} 0',
            id="negative, and the container nothing",
        ),
        pytest.param(
            {"cpu": "-1"},
            {},
            'Invalid value: "-1": must be greater than or equal to 0',
            id="negative, and the container does not request it",
        ),
    ],
)
def test_a_pod_requests_at_least_what_its_containers_request(
    requests: dict[str, str], of_container: dict[str, str], want: str
) -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": of_container}}
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [container], "resources": {"requests": requests}}}
    answer = Client().call("POST", "/api/v1/namespaces/default/pods", pod)
    causes = answer.at("details.causes")
    assert answer.status == 422
    assert isinstance(causes, list)
    assert causes[-1]["message"] == want


def test_the_containers_are_summed_once_for_all_resource_names(monkeypatch: pytest.MonkeyPatch) -> None:
    def sums_with(count: int) -> int:
        sums.clear()
        pages = {f"hugepages-{2 + index}Mi": "0" for index in range(count)}
        resources = {"requests": {"cpu": "1", **pages}, "limits": {"cpu": "1", **pages}}
        container = {"name": "c", "image": "i", "resources": resources}
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [container], "resources": resources}}
        assert Client().call("POST", "/api/v1/namespaces/default/pods?dryRun=All", pod).status == 201
        return len(sums)

    sums: list[str] = []
    total = PodAmounts.total

    def counted(amounts: PodAmounts, kind: str, *, overhead: bool) -> dict[str, Quantity]:
        sums.append(kind)
        return total(amounts, kind, overhead=overhead)

    monkeypatch.setattr(PodAmounts, "total", counted)
    assert sums_with(20) == sums_with(2) > 0


def test_sidecars_count_among_the_containers_of_a_pod() -> None:
    sidecar = {"name": "s", "image": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "600m"}}}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "600m"}}}
    spec = {"containers": [container], "initContainers": [sidecar], "resources": {"requests": {"cpu": "1"}}}
    answer = Client().call("POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": "p"}, "spec": spec})

    assert answer.at("details.causes.0.message") == f'Invalid value: "1": {_AGGREGATE} 1200m'


def test_limits_of_huge_pages_default_to_the_sum_of_the_containers() -> None:
    pages = {"hugepages-2Mi": "2Mi", "memory": "1Mi"}
    containers = [
        {"name": name, "image": "i", "resources": {"requests": pages, "limits": pages}} for name in ("a", "b")
    ]
    spec = {"containers": containers, "resources": {"requests": {"cpu": "1"}}}
    answer = Client().call("POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": "p"}, "spec": spec})

    assert answer.at("spec.resources.limits") == {"hugepages-2Mi": "4Mi"}
    assert answer.at("spec.resources.requests") == {"cpu": "1", "memory": "2Mi", "hugepages-2Mi": "4Mi"}


def test_requests_of_a_pod_without_limits_have_no_defaults() -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"memory": "1Mi"}}}
    spec = {"containers": [container], "resources": {"requests": {"cpu": "1"}}}
    answer = Client().call("POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": "p"}, "spec": spec})

    assert answer.at("spec.resources") == {"requests": {"cpu": "1"}}


@pytest.mark.parametrize(
    ("allocated", "want"),
    [([], 200), ([{"name": "cpu", "resources": []}], 422)],
    ids=["an empty list is no list", "a list is refused"],
)
def test_statuses_of_ephemeral_containers_have_no_allocated_resources(allocated: list[Document], want: int) -> None:
    client = Client()
    assert client.post(PODS, pod("p")).status == 201
    status: Document = {"name": "e", "allocatedResourcesStatus": allocated}
    answer = client.patch(f"{PODS}/p/status", {"status": {"ephemeralContainerStatuses": [status]}}, MERGE)
    assert answer.status == want
    assert want == 200 or "must not be specified in container status" in str(answer.at("message"))


def test_a_repeated_label_key_that_the_selector_has_is_reported_at_its_last_place() -> None:
    term: Document = {"topologyKey": "z", "matchLabelKeys": ["k", "k"]}
    term["labelSelector"] = {"matchExpressions": [{"key": "k", "operator": "Exists"}] * 2}
    affinity: Document = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    answer = Client().post(PODS, pod("p", lambda new: new["spec"].update(affinity=affinity)))  # type: ignore[attr-defined]
    causes = answer.at("details.causes")
    assert isinstance(causes, list)
    want = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0][1]"
    assert {each["field"] for each in causes} == {want}


def _messages(spec: Document) -> list[tuple[str, str]]:
    answer = Client().call("POST", PODS, {"metadata": {"name": "p"}, "spec": spec})
    causes = answer.at("details.causes")
    assert isinstance(causes, list)
    return [(str(each["field"]), str(each["message"])) for each in causes]


def test_a_size_of_huge_pages_that_is_no_amount_has_no_multiples() -> None:
    amounts = {"cpu": "1", "hugepages-x": "1Gi"}
    container = {"name": "c", "image": "i", "resources": {"limits": amounts, "requests": amounts}}
    text = 'Invalid value: "1Gi": 1Gi is not positive integer multiple of hugepages-x'

    assert _messages({"containers": [container]}) == [
        ("spec.containers[0].resources.limits[hugepages-x]", text),
        ("spec.containers[0].resources.requests[hugepages-x]", text),
    ]


@pytest.mark.parametrize(
    ("name", "field", "want"),
    [
        ("kernel/shm_rmid_forced", "hostIPC", True),
        ("kernel.shm", "hostIPC", True),
        ("kernel.shmx", "hostIPC", False),
        ("fs.mqueue.x", "hostIPC", True),
        ("net.x", "hostNetwork", True),
        ("net", "hostNetwork", False),
    ],
)
def test_parameters_of_the_kernel_belong_to_a_namespace(name: str, field: str, want: bool) -> None:
    context = {"sysctls": [{"name": name, "value": "1"}, {"name": "kernel.bad.", "value": "1"}]}
    spec: Document = {"containers": [{"name": "c", "image": "i"}], "securityContext": context, field: True}
    text = f"Invalid value: \"{name}\": may not be specified when '{field}' is true"

    assert (("spec.securityContext.sysctls[0].name", text) in _messages(spec)) == want


def test_the_name_of_an_ephemeral_volume_is_checked_with_its_source() -> None:
    claim = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    volume = {"name": "A", "image": {"reference": "i"}, "ephemeral": {"volumeClaimTemplate": claim}}
    second = {"name": "B", "emptyDir": {}, "ephemeral": {"volumeClaimTemplate": claim}}
    found = _messages({"containers": [{"name": "c", "image": "i"}], "volumes": [volume, second]})

    assert [(field, message[:30]) for field, message in found] == [
        ("spec.volumes[0].name", 'Invalid value: "A": PVC name "'),
        ("spec.volumes[0].image", "Forbidden: may not specify mor"),
        ("spec.volumes[0].name", 'Invalid value: "A": a lowercas'),
        ("spec.volumes[1].ephemeral", "Forbidden: may not specify mor"),
        ("spec.volumes[1].name", 'Invalid value: "B": a lowercas'),
    ]
