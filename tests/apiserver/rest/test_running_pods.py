"""Logs show the life of a pod; requests that need a running container are refused with the reason."""

from __future__ import annotations

import pytest

from tests.apiserver.client import PODS, Client, Document, pod

TIME = "2026-01-01T00:00:00Z"


@pytest.fixture
def client() -> Client:
    made = Client()
    made.backend.runs_pods = True
    assert made.post(PODS, pod("p")).status == 201
    return made


def event(name: str, uid: object, **more: object) -> Document:
    involved: Document = {"kind": "Pod", "namespace": "default", "name": "p", "uid": uid}
    return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "involvedObject": involved, **more}


def test_the_log_lists_the_lifecycle_of_the_pod(client: Client) -> None:
    uid = client.get(f"{PODS}/p").at("metadata.uid")
    ended = {"name": "c", "state": {"terminated": {"exitCode": 3, "finishedAt": "2026-01-01T00:02:00Z"}}}
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:05Z"}
    status = {"startTime": "2026-01-01T00:00:07Z", "conditions": [scheduled], "containerStatuses": [ended]}
    assert (
        client.post(f"{PODS}/p/binding", {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}).status
        == 201
    )
    assert client.patch(f"{PODS}/p/status", {"status": status}).status == 200
    events = "/api/v1/namespaces/default/events"
    reported = {
        "reason": "FailedScheduling",
        "message": "0/1 nodes",
        "type": "Warning",
        "count": 2,
        "lastTimestamp": TIME,
    }
    assert client.post(events, event("e", uid, source={"component": "default-scheduler"}, **reported)).status == 201
    assert client.post(events, event("other", "nobody", reason="No", lastTimestamp=TIME)).status == 201
    answer = client.get(f"{PODS}/p/log?container=c&follow=true")
    assert (answer.status, str(answer.body).splitlines()) == (
        200,
        [
            "No container runs here: pods and nodes are simulated. What happened to pod default/p:",
            "2026-01-01T00:00:00Z created",
            "2026-01-01T00:00:00Z Warning FailedScheduling from default-scheduler: 0/1 nodes (x2)",
            "2026-01-01T00:00:05Z scheduled to node n",
            "2026-01-01T00:00:07Z started on node n",
            "2026-01-01T00:02:00Z container c ended with exit code 3",
        ],
    )
    assert str(client.get(f"{PODS}/p/log?tailLines=1").body).endswith("exit code 3\n")
    assert client.get(f"{PODS}/p/log?limitBytes=12").body == "No container"


def test_the_log_of_a_pending_pod_shows_the_reason(client: Client) -> None:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "message": "0/3 nodes are available",
        "lastTransitionTime": TIME,
    }
    assert client.patch(f"{PODS}/p/status", {"status": {"conditions": [condition]}}).status == 200
    assert f"{TIME} pending: 0/3 nodes are available" in str(client.get(f"{PODS}/p/log").body)


@pytest.mark.parametrize(
    ("method", "path", "want"),
    [
        pytest.param("POST", "exec?command=ls", "can't run a command in pod default/p: no container runs here", id="exec"),
        pytest.param("POST", "attach", "can't attach to pod default/p: no container runs here", id="attach"),
        pytest.param("POST", "portforward", "can't forward a port to pod default/p: no container runs here", id="port-forward"),
        pytest.param("GET", "proxy", "can't connect to pod default/p: no container runs here", id="proxy"),
        pytest.param("GET", "log?container=x", "container x is not valid for pod p", id="a container that does not exist"),
    ],
)  # fmt: skip
def test_requests_requiring_a_running_container_are_refused_with_a_reason(
    client: Client, method: str, path: str, want: str
) -> None:
    answer = client.call(method, f"{PODS}/p/{path}")
    assert (answer.status, str(answer.at("message")).partition(",")[0]) == (400, want)


def test_the_log_of_a_pod_with_several_containers_requires_a_container_name(client: Client) -> None:
    two = pod("two", lambda new: new["spec"]["containers"].append({"name": "d", "image": "i"}))  # type: ignore[index]
    assert client.post(PODS, two).status == 201
    answer = client.get(f"{PODS}/two/log")
    assert answer.at("message") == "a container name must be specified for pod two, choose one of: [c d]"
    assert client.get(f"{PODS}/nosuch/log").status == 404
