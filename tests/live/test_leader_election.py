"""Leader election: the three recorded runs of a scheduler repeated, and errors with leases."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from bayplan.base.go_text.times import format_micro_time
from bayplan.client.requests import ApiRequest, ApiResponse
from bayplan.live.leader_election import LeaderElectionOptions, LeaderElector

RECORDING = Path(__file__).resolve().parents[2] / "conformance" / "e2e" / "leader_election.json"
SECOND = 1_000_000_000
Steps = Generator[ApiRequest | float, ApiResponse, None]


class LeaseServer:
    """A server that has one lease, in virtual time."""

    def __init__(self) -> None:
        self.now_ns = 1_800_000_000 * SECOND
        self.lease: dict[str, Any] | None = None
        self.requests: list[tuple[str, str, str]] = []
        self.events: list[dict[str, Any]] = []
        self.fails = False

    def answer(self, request: ApiRequest) -> ApiResponse:
        self.requests.append((request.method, request.path, request.query))
        if self.fails:
            return ApiResponse(0, b"connection refused")
        body = json.loads(request.body) if request.body else {}
        if request.path.endswith("/events"):
            self.events.append(body)
            return ApiResponse(201, request.body)
        if request.method == "GET":
            return ApiResponse(404) if self.lease is None else ApiResponse(200, json.dumps(self.lease).encode())
        known = self.lease["metadata"]["resourceVersion"] if self.lease is not None else None
        if body["metadata"].get("resourceVersion") != known:
            return ApiResponse(409)
        self.lease = body
        body["metadata"] |= {"uid": "uid", "resourceVersion": str(int(known or 0) + 1)}
        return ApiResponse(201 if known is None else 200, json.dumps(body).encode())

    def run(self, steps: Steps, until_ns: int) -> bool:
        """Run steps until a time; return whether they ended before it."""
        try:
            step = next(steps)
            while True:
                if isinstance(step, ApiRequest):
                    step = steps.send(self.answer(step))
                    continue
                if self.now_ns + int(step * SECOND) > until_ns:
                    self.now_ns = until_ns
                    return False
                self.now_ns += int(step * SECOND)
                step = next(steps)
        except StopIteration:
            return True


def elector(server: LeaseServer, identity: str) -> LeaderElector:
    return LeaderElector(
        LeaderElectionOptions(),
        identity=identity,
        controller="default-scheduler",
        now_ns=lambda: server.now_ns,
        jitter=lambda: 0.5,
    )


def later(server: LeaseServer, seconds: float) -> int:
    return server.now_ns + int(seconds * SECOND)


def shape(spec: dict[str, Any]) -> tuple[Any, ...]:
    """Return the parts of a lease that are the same in every run."""
    same_instant = spec["acquireTime"][:19] == spec["renewTime"][:19]
    return bool(spec["holderIdentity"]), spec["leaseDurationSeconds"], spec["leaseTransitions"], same_instant


def test_lease_states_over_three_runs_match_the_recording() -> None:
    recorded = json.loads(RECORDING.read_text())
    [reported] = [step["lease"] for step in recorded["steps"] if "lease" in step]
    server, seen = LeaseServer(), list[Any]()

    def look() -> None:
        assert server.lease is not None
        seen.append(dict(server.lease["spec"]))

    first, second, third = (elector(server, name) for name in ("first", "second", "third"))
    assert server.run(first.acquire(), later(server, 1))
    server.now_ns += SECOND // 100
    renewing = first.renew()
    server.run(renewing, server.now_ns)
    look()
    assert not server.run(renewing, later(server, 5))
    look()
    assert server.run(first.release(), server.now_ns)
    look()
    assert server.run(second.acquire(), later(server, 1))
    server.run(second.renew(), server.now_ns)
    look()
    look()  # The leader was killed, so nothing changes.
    killed_ns = server.now_ns
    assert server.run(third.acquire(), later(server, 30))
    look()
    assert [shape(spec) for spec in seen] == [shape(item["spec"]) for item in reported]
    assert [spec["holderIdentity"] for spec in seen] == ["first", "first", "", "second", "second", "third"]
    assert 15 <= (server.now_ns - killed_ns) / SECOND <= 20


def test_leader_election_sends_the_recorded_requests() -> None:
    recorded = json.loads(RECORDING.read_text())
    first_life = [
        (call["method"], call["path"]) for call in recorded["observed"]["calls"] if call["at_ms"] < 4500
    ]  # fmt: skip
    server = LeaseServer()
    leader = elector(server, "host_1")
    server.run(leader.acquire(), later(server, 1))
    server.run(leader.announce(), later(server, 1))
    server.run(leader.renew(), later(server, 4))
    ours = [(method, f"{path}?{query}" if query else path) for method, path, query in server.requests]
    # Upstream records the event concurrently with the first renewal, so the order of both varies.
    assert sorted(ours) == sorted(first_life)
    [event] = server.events
    want = next(
        call["body"] for call in recorded["observed"]["calls"] if call["body"] and call["body"]["kind"] == "Event"
    )
    assert event.keys() == want.keys()
    assert event["involvedObject"].keys() == want["involvedObject"].keys()
    for name in ("reason", "source", "count", "type", "reportingComponent", "reportingInstance", "eventTime"):
        assert event[name] == want[name]
    assert event["message"] == "host_1 became leader"


def test_a_leader_without_responses_resigns_after_the_renew_deadline() -> None:
    server = LeaseServer()
    leader = elector(server, "one")
    server.run(leader.acquire(), later(server, 1))
    server.fails = True
    began = server.now_ns
    assert server.run(leader.renew(), later(server, 60))
    assert (server.now_ns - began) / SECOND == 10
    assert not leader.leads


def test_the_renew_deadline_starts_after_the_next_retry_period() -> None:
    server = LeaseServer()
    leader = elector(server, "one")
    server.run(leader.acquire(), later(server, 1))
    renewing, renewed = leader.renew(), server.now_ns
    assert not server.run(renewing, renewed)
    server.fails = True
    assert server.run(renewing, later(server, 60))
    assert (server.now_ns - renewed) / SECOND == 12


def test_a_candidate_retries_after_the_retry_period_plus_jitter() -> None:
    server = LeaseServer()
    server.fails = True
    # 2 s plus half of 1.2 times 2 s: requests after 0, 3.2, 6.4 and 9.6 s.
    assert not server.run(elector(server, "one").acquire(), later(server, 9.6))
    assert len(server.requests) == 4


def test_a_leader_survives_a_conflicting_write() -> None:
    server = LeaseServer()
    leader = elector(server, "one")
    server.run(leader.acquire(), later(server, 1))
    assert server.lease is not None
    server.lease["metadata"]["resourceVersion"] = "41"
    assert not server.run(leader.renew(), later(server, 1))
    assert server.lease["metadata"]["resourceVersion"] == "42"


def test_a_leader_stops_when_another_holder_takes_the_lease() -> None:
    server = LeaseServer()
    leader = elector(server, "one")
    server.run(leader.acquire(), later(server, 1))
    assert server.lease is not None
    server.lease["metadata"]["resourceVersion"] = "41"
    server.lease["spec"] |= {"holderIdentity": "two", "renewTime": format_micro_time(server.now_ns)}
    assert server.run(leader.renew(), later(server, 14))
    assert not leader.leads
    assert server.run(leader.release(), server.now_ns)
    assert server.lease["spec"]["holderIdentity"] == "two"


def test_expired_for_seconds_counts_from_the_end_of_the_lease() -> None:
    server = LeaseServer()
    leader = elector(server, "one")
    assert leader.expired_for_seconds() == 0
    server.run(leader.acquire(), later(server, 1))
    server.now_ns += 20 * SECOND
    assert leader.expired_for_seconds() == 5


def test_acquiring_the_lease_does_not_wait_for_the_event() -> None:
    server = LeaseServer()
    leader = elector(server, "one")
    assert server.run(leader.acquire(), later(server, 1))
    assert (leader.leads, server.events) == (True, [])
    assert server.run(leader.announce(), later(server, 1))
    assert [event["message"] for event in server.events] == ["one became leader"]


def test_the_reason_why_the_lease_is_unavailable_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    server = LeaseServer()
    server.fails = True
    leader = elector(server, "one")
    steps = leader.acquire()
    assert not server.run(steps, later(server, 20))
    assert caplog.messages == ["lease kube-system/kube-scheduler: connection refused"]
    server.fails = False
    assert server.run(steps, later(server, 20))
    server.fails = True
    server.run(leader.renew(), later(server, 20))
    assert caplog.messages == ["lease kube-system/kube-scheduler: connection refused"] * 2
