"""Recorded exchanges: replayed as scenarios in virtual time, and compared except for variable parts."""

from __future__ import annotations

import pytest

from bayplan.apiserver.rest.listing import encode_continue
from bayplan.conformance.api import at_pointer, replay
from bayplan.conformance.cases import Json, JsonObject, Scenario
from bayplan.conformance.exchanges import comparable_parts

PODS = "/api/v1/namespaces/t/pods"


def exchange(number: int, method: str, path: str, body: Json = None, **more: Json) -> JsonObject:
    return {"id": f"x/{number}", "request": {"method": method, "path": path, "headers": {}, "body": body}, **more}


def test_a_replay_keeps_order_and_reuses_captured_values() -> None:
    pod: Json = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    watch = f"{PODS}?watch=1&timeoutSeconds=600&resourceVersion="
    scenario = [
        exchange(
            0, "POST", "/api/v1/namespaces", {"metadata": {"name": "t"}}, captures={"v": "/metadata/resourceVersion"}
        ),
        exchange(1, "GET", f"{watch}1", background=True, template={"path": f"{watch}${{v}}", "body": None}),
        exchange(2, "POST", PODS, pod),
        exchange(3, "GET", f"{PODS}/p?resourceVersion=1", note="(etcd was compacted and the apiserver restarted)"),
        exchange(4, "GET", f"{watch}1"),
    ]
    answers = replay(scenario)
    responses = {name: answer["response"] for name, answer in answers.items()}
    assert at_pointer(responses["x/1"], "/stream/0/object/metadata/name") == "p"
    assert at_pointer(responses["x/3"], "/body/metadata/name") == "p"
    assert at_pointer(responses["x/4"], "/stream/0/object/code") == 410


@pytest.mark.parametrize(("recorded", "want"), [(200, 200), (504, 504)])
def test_a_recorded_continue_token_of_a_future_revision_gets_the_current_one_unless_it_is_refused(
    recorded: int, want: int
) -> None:
    path = f"/api/v1/configmaps?limit=2&continue={encode_continue(10**6, 'a/b')}"

    answers = replay([exchange(0, "GET", path, response={"status": recorded})])

    assert at_pointer(answers["x/0"]["response"], "/status") == want


@pytest.mark.parametrize(
    ("recorded", "ours", "variable", "want"),
    [
        pytest.param({"a": "1"}, {"a": "2"}, [], False, id="another value"),
        pytest.param({"a": "1"}, {"a": "2"}, ["/body/a"], True, id="a value that varies"),
        pytest.param({"a": "1"}, {}, ["/body/a"], False, id="one that varies and is missing"),
        pytest.param({"a": "1"}, {"a": 1}, ["/body/a"], False, id="one that varies and is no text"),
        pytest.param({"a": "2026-11-21T09:00:00Z"}, {"a": "2026-01-01T00:00:00Z"}, [], True, id="the clock"),
        pytest.param({"a": "2027-03-04T09:00:00Z"}, {"a": "soon"}, [], False, id="the clock, and no time"),
        pytest.param(
            {"a": "2026-01-02T09:00:00Z"}, {"a": "2026-01-01T00:00:00Z"}, [], False, id="a time that was sent"
        ),
        pytest.param({"details": {"uid": "1"}}, {"details": {"uid": "2"}}, [], True, id="the uid of a Status"),
        pytest.param([{"a": 1}, {"b": "x"}], [{"a": 1}, {"b": "y"}], ["/body/1/b"], True, id="in a list"),
    ],
)
def test_only_variable_values_may_differ_in_a_response(
    recorded: Json, ours: Json, variable: list[Json], want: bool
) -> None:
    record: JsonObject = {"response": {"status": 200, "body": recorded}, "variable": variable}
    sent: JsonObject = {"request": {"body": {"renewTime": "2026-01-02T09:00:00.000000Z"}}}
    record["scenario"] = Scenario([sent, record.copy()])
    parts = {
        name: left == right
        for name, left, right in comparable_parts(record, {"response": {"status": 200, "body": ours}})
    }
    assert parts == {"status": True, "body": want}
