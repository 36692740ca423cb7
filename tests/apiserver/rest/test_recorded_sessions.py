"""Recorded sessions of kubectl and kube-scheduler, sent to Bayplan's API, get the answers that the real server gave."""

from __future__ import annotations

from typing import cast

from bayplan.conformance.api import at_pointer, replay
from bayplan.conformance.cases import Json, JsonObject
from tests.apiserver.rest.recorded_sessions import Scenario, plain, read_sessions
from tests.shared import shared_path

BINDING: JsonObject = {"metadata": {"name": "p1"}, "target": {"kind": "Node", "name": "n1"}}


def sessions(beginning: str) -> list[JsonObject]:
    found = read_sessions(shared_path("conformance", "api", "clients.jsonl.gz"))
    return [each for each in found if str(each["session"]).startswith(beginning)]


def differences(scenario: Scenario) -> list[str]:
    """Return where our answers differ from the recorded ones."""
    answers, found = replay(scenario.exchanges), []
    for exchange in scenario.exchanges:
        want = cast("JsonObject", exchange["response"])
        got = cast("JsonObject", answers[str(exchange["id"])]["response"])
        part = "stream" if "stream" in want else "body"
        if want and (want["status"], plain(want.get(part))) != (got["status"], plain(got.get(part))):
            found.append(
                f"{exchange['id']}: {want['status']} and {got['status']}, {plain(want[part])}, {plain(got.get(part))}"
            )
    return found


def test_replayed_kubectl_sessions_get_the_recorded_responses() -> None:
    scenario = Scenario()
    for session in sessions("kubectl"):
        if session["session"] == "kubectl describe pod p1":
            # Another client bound the pod between two sessions.
            scenario.send("bind", "POST", "/api/v1/namespaces/demo/pods/p1/binding", BINDING)
        scenario.add(session)
    assert len(scenario.exchanges) > 180
    assert differences(scenario) == []


def seed(scenario: Scenario) -> None:
    """Add the pods and the node that the recorded scheduler found."""
    node: JsonObject = {
        "metadata": {"name": "n1"},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }
    scenario.send("node", "POST", "/api/v1/nodes", node)
    container: Json = {"name": "c", "image": "pause:3.10"}
    for name in ("low", "toobig", "high"):
        pod: JsonObject = {"metadata": {"name": name}, "spec": {"containers": [container]}}
        scenario.send(name, "POST", "/api/v1/namespaces/default/pods", pod)


def without_uids(value: Json) -> Json:
    """Return a body without the uids of pods that were made outside the session."""
    if isinstance(value, dict):
        return {name: without_uids(item) for name, item in value.items() if name != "uid"}
    return [without_uids(item) for item in value] if isinstance(value, list) else value


def test_a_replayed_scheduler_session_gets_the_recorded_statuses_and_streaming_lists() -> None:
    scenario = Scenario()
    seed(scenario)
    (session,) = sessions("kube-scheduler")
    scenario.add(session)
    for exchange in scenario.exchanges:
        for part in ("request", "template"):
            exchange[part] = without_uids(exchange.get(part) or {})
    answers = replay(scenario.exchanges)
    streams = 0
    for exchange in scenario.exchanges:
        want, got = cast("JsonObject", exchange["response"]), answers[str(exchange["id"])]["response"]
        assert isinstance(got, dict)
        if want:
            assert got["status"] == want["status"], (exchange["id"], got)
        if want and "sendInitialEvents=true" in str(cast("JsonObject", exchange["request"])["path"]):
            streams += 1
            events = cast("list[JsonObject]", got["stream"])
            initial = next(each for each in events if each["type"] == "BOOKMARK")
            assert at_pointer(initial, "/object/metadata/annotations") == {"k8s.io/initial-events-end": "true"}
    assert streams >= 17
