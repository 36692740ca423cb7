"""Writes that meet conflicts are repeated after pauses; a target that answers every write with a conflict is reported."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from bayplan.base.plain_data import Document, part
from bayplan.client.requests import NO_ANSWER, ApiRequest, ApiResponse
from bayplan.sync.sync_write import SyncWrite, Verb
from bayplan.sync.writing import execute_write
from tests.sync.follower_fixture import FollowerFixture, node

CONFLICT = ApiResponse(409, msgspec.json.encode({"message": "the webhook denied the request"}))
PAUSES = [0.05, 0.1, 0.2, 0.4]


def started() -> FollowerFixture:
    fixture = FollowerFixture()
    fixture.put("nodes", node("n1"))
    fixture.start()
    fixture.work()
    return fixture


def execute(
    fixture: FollowerFixture, write: SyncWrite, conflicts: int, before_conflict: Callable[[], object] | None = None
) -> tuple[list[str], list[float]]:
    """Execute a write whose first requests meet conflicts, except reads; return the methods and the pauses."""
    steps, answer = execute_write(fixture.follower, write), None
    methods, pauses = list[str](), list[float]()
    while True:
        try:
            step = next(steps) if answer is None else steps.send(answer)
        except StopIteration:
            return methods, pauses
        answer = None
        if isinstance(step, float):
            pauses.append(step)
            continue
        methods.append(step.method)
        if step.method != "GET" and conflicts:
            conflicts -= 1
            if before_conflict is not None:
                before_conflict()
            answer = CONFLICT
        else:
            answer = fixture.here.send(step)


@pytest.mark.parametrize(
    ("verb", "conflicts", "methods", "pauses", "problem"),
    [
        pytest.param(
            Verb.CREATE, 1, ["POST", "GET", "POST", "PUT", "PUT"], PAUSES[:1], False, id="a creation is repeated"
        ),
        pytest.param(Verb.CREATE, 100, ["POST", "GET"] * 5, PAUSES, True, id="but not forever"),
        pytest.param(Verb.UPDATE, 1, ["GET", "PUT", "GET", "PUT", "PUT"], PAUSES[:1], False, id="an update is repeated"),
        pytest.param(Verb.UPDATE, 100, ["GET", "PUT"] * 5, PAUSES, True, id="but not forever either"),
        pytest.param(Verb.DELETE, 100, ["DELETE", "GET"], [], True, id="a refused deletion is reported"),
    ],
)  # fmt: skip
def test_writes_are_repeated_after_conflicts(
    verb: Verb, conflicts: int, methods: list[str], pauses: list[float], problem: bool
) -> None:
    fixture = started()
    name = "n2" if verb is Verb.CREATE else "n1"
    if verb is Verb.DELETE:
        fixture.remove("nodes", name)
    else:
        fixture.put("nodes", node(name, cpu="8"))
    fixture.tell()
    (write,) = fixture.follower.next_writes(10)
    assert write.verb is verb
    before = fixture.follower.counts[verb]
    assert execute(fixture, write, conflicts) == (methods, pauses)
    found = [each.message for each in fixture.follower.problems.values()]
    assert found == (["the webhook denied the request"] if problem else [])
    assert fixture.follower.counts[verb] == before + (not problem)
    fixture.work()


def met_conflicts(fixture: FollowerFixture, write: SyncWrite, answer: Callable[[ApiRequest], ApiResponse]) -> bool:
    """Execute a write with the responses of a function; return whether it failed because of conflicts."""
    steps = execute_write(fixture.follower, write)
    try:
        step = next(steps)
        while True:
            step = next(steps) if isinstance(step, float) else steps.send(answer(step))
    except StopIteration as end:
        return end.value is True


def cpu(fixture: FollowerFixture, name: str) -> object:
    """Return the CPUs of a node of the target."""
    return part(part(fixture.here.get("nodes", name) or {}, "status"), "capacity")["cpu"]


def test_an_update_counts_if_a_conflict_follows_its_only_write() -> None:
    fixture = started()
    changed = node("n1", cpu="8", unschedulable=True)
    time = "2026-01-01T00:00:00Z"
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": time, "lastTransitionTime": time}
    changed["status"] = {**part(changed, "status"), "conditions": [ready]}
    fixture.put("nodes", changed)
    fixture.tell()
    (write,) = fixture.follower.next_writes(10)
    before = fixture.follower.counts[Verb.UPDATE]
    puts = list[str]()

    def answer(request: ApiRequest) -> ApiResponse:
        response = fixture.here.send(request)
        if request.method == "PUT":
            puts.append(request.path)
        # Another client writes the same, so that nothing differs when the node is read again.
        return CONFLICT if (request.method, request.path) == ("PUT", "/api/v1/nodes/n1") else response

    assert not met_conflicts(fixture, write, answer)
    assert puts == ["/api/v1/nodes/n1/status", "/api/v1/nodes/n1"]
    assert fixture.follower.counts[Verb.UPDATE] == before + 1
    assert fixture.follower.problems == {}


@pytest.mark.parametrize(
    "name", [pytest.param("n1", id="an update"), pytest.param("n2", id="the status of a created object")]
)
def test_a_write_that_met_conflicts_can_be_retried(name: str) -> None:
    fixture = started()
    fixture.put("nodes", node(name, cpu="8"))
    fixture.tell()
    (write,) = fixture.follower.next_writes(10)
    assert met_conflicts(fixture, write, lambda each: CONFLICT if each.method == "PUT" else fixture.here.send(each))
    fixture.work()
    (ref,) = fixture.follower.problems
    fixture.follower.retry(ref)
    fixture.work()
    assert fixture.follower.problems == {}
    assert cpu(fixture, name) == "8"


def test_the_deletion_of_an_object_that_was_replaced_meanwhile_succeeds() -> None:
    fixture = started()
    fixture.remove("nodes", "n1")
    fixture.tell()
    (write,) = fixture.follower.next_writes(10)

    def replace() -> None:
        fixture.here.ask("DELETE", "/api/v1/nodes/n1")
        fixture.here.ask("POST", "/api/v1/nodes", node("n1"))

    assert execute(fixture, write, 1, replace) == (["DELETE", "GET"], [])
    assert fixture.follower.counts[Verb.DELETE] == 0
    fixture.work()
    assert fixture.follower.problems == {}
    assert fixture.here.send(ApiRequest("GET", "/api/v1/nodes/n1")).ok


REFUSED = ApiResponse(422, b'{"message": "invalid"}')


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        pytest.param("n1", "PUT", id="an update"),
        pytest.param("n2", "POST", id="a creation"),
        pytest.param("n2", "PUT", id="the status of a created object"),
    ],
)
@pytest.mark.parametrize("is_removed", [True, False])
def test_a_change_in_the_source_during_a_refused_write_is_not_lost(name: str, refused: str, is_removed: bool) -> None:
    fixture = started()
    fixture.put("nodes", node(name, cpu="8"))
    fixture.tell()
    (write,) = fixture.follower.next_writes(10)

    def answer(request: ApiRequest) -> ApiResponse:
        if request.method != refused:
            return fixture.here.send(request)
        if is_removed:
            fixture.remove("nodes", name)
        else:
            fixture.put("nodes", node(name, cpu="16"))
        fixture.tell()
        return REFUSED

    met_conflicts(fixture, write, answer)
    fixture.work()
    assert fixture.follower.problems == {}
    if is_removed:
        assert fixture.here.get("nodes", name) is None
    else:
        assert cpu(fixture, name) == "16"


@pytest.mark.parametrize("status", [503, 504])
def test_a_write_is_repeated_after_an_outage_of_the_target(status: int) -> None:
    fixture = started()
    fixture.put("nodes", node("n2"))
    fixture.tell()
    (write,) = fixture.follower.next_writes(1)
    outage = [ApiResponse(status)] * 5 + [ApiResponse(NO_ANSWER), ApiResponse(status)]
    methods = list[str]()

    def answer(request: ApiRequest) -> ApiResponse:
        methods.append(request.method)
        return outage.pop(0) if outage else fixture.here.send(request)

    assert not met_conflicts(fixture, write, answer)
    assert methods[:9] == ["POST"] * 5 + ["GET"] * 3 + ["POST"]
    assert fixture.follower.problems == {}
    assert fixture.here.get("nodes", "n2") is not None


def test_a_write_is_given_up_if_reads_of_its_object_meet_internal_errors() -> None:
    fixture = started()
    fixture.put("nodes", node("n2"))
    fixture.tell()
    (write,) = fixture.follower.next_writes(1)
    assert met_conflicts(fixture, write, lambda each: ApiResponse(503 if each.method == "POST" else 500))
    assert len(fixture.follower.problems) == 1


def test_a_default_priority_class_that_exists_is_found() -> None:
    fixture = started()
    default: Document = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "usual"}}
    default |= {"value": 7, "globalDefault": True}
    fixture.put("priorityclasses", default)
    fixture.tell()
    (write,) = fixture.follower.next_writes(1)
    fixture.here.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", default)
    responses: list[tuple[str, int]] = []

    def answer(request: ApiRequest) -> ApiResponse:
        response = fixture.here.send(request)
        responses.append((request.method, response.status))
        return response

    met_conflicts(fixture, write, answer)
    assert (responses, fixture.follower.problems) == ([("POST", 403), ("GET", 200)], {})
