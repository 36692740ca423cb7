"""Events: the first is created, the second starts a series, later ones are counted; finished series are forgotten."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bayplan.client.event_recorder import FINISH_NS, MAX_TRIES, REFRESH_NS, EventRecorder, EventRecording, PodEvent
from bayplan.client.requests import NO_ANSWER, ApiRequest, ApiResponse
from bayplan.objects.meta import ObjectMeta
from bayplan.objects.pod import Pod

START_NS = 1_800_000_000_123_456_789


class Time:
    def __init__(self) -> None:
        self.now_ns = START_NS

    def __call__(self) -> int:
        return self.now_ns


def event(name: str = "p", *, version: str = "7", note: str = "no room", reason: str = "FailedScheduling") -> PodEvent:
    pod = Pod(metadata=ObjectMeta(name=name, namespace="n", uid=f"uid-{name}", resource_version=version))
    return PodEvent(pod, "Warning", reason, "Scheduling", note, "default-scheduler")


def recorded(recorder: EventRecorder, reported: PodEvent) -> EventRecording:
    recording = recorder.record(reported)
    assert recording is not None
    return recording


def answered(recording: EventRecording, *statuses: int) -> tuple[list[tuple[str, str]], list[float], bool]:
    """Drive a recording with these answers; return the requests, the pauses, and whether it was written."""
    requests: list[tuple[str, str]] = []
    pauses: list[float] = []
    left = list(statuses)
    steps = recording.exchange()
    try:
        step = next(steps)
        while True:
            if isinstance(step, ApiRequest):
                requests.append((step.method, step.path))
                step = steps.send(ApiResponse(left.pop(0)))
            else:
                pauses.append(step)
                step = next(steps)
    except StopIteration as ended:
        return requests, pauses, ended.value


def test_an_event_is_created_like_upstream() -> None:
    recording = recorded(EventRecorder("host", Time()), event())
    request = next(recording.exchange())
    assert isinstance(request, ApiRequest)
    assert (request.method, request.path) == ("POST", "/apis/events.k8s.io/v1/namespaces/n/events")
    assert msgspec.json.decode(request.body) == {
        "kind": "Event", "apiVersion": "events.k8s.io/v1",
        "metadata": {"name": f"p.{START_NS:x}", "namespace": "n"},
        "eventTime": "2027-01-15T08:00:00.123456Z",
        "reportingController": "default-scheduler", "reportingInstance": "default-scheduler-host",
        "action": "Scheduling", "reason": "FailedScheduling", "note": "no room", "type": "Warning",
        "regarding": {"kind": "Pod", "namespace": "n", "name": "p", "uid": "uid-p", "apiVersion": "v1", "resourceVersion": "7"},
        "deprecatedSource": {}, "deprecatedFirstTimestamp": None, "deprecatedLastTimestamp": None,
    }  # fmt: skip


def test_a_repeated_event_patches_a_series_and_further_ones_are_not_written() -> None:
    time = Time()
    recorder = EventRecorder("host", time)
    first = recorded(recorder, event())
    time.now_ns += 1_000_000_000
    second = recorded(recorder, event(note="still no room"))
    assert recorder.record(event()) is None
    request = next(second.exchange())
    assert isinstance(request, ApiRequest)
    assert (request.method, request.path) == ("PATCH", f"{first.path}/{first.name}")
    assert msgspec.json.decode(request.body) == {
        "series": {"count": 2, "lastObservedTime": "2027-01-15T08:00:01.123456Z"}
    }


def test_an_event_for_a_new_resource_version_is_not_part_of_the_series() -> None:
    recorder = EventRecorder("host", Time())
    names = {recorded(recorder, event(version=version)).name for version in ("7", "8")}
    assert len(names) == 2


def test_scheduled_events_do_not_start_a_series() -> None:
    recorder = EventRecorder("host", Time())
    assert not recorded(recorder, event(reason="Scheduled")).is_series
    assert not recorded(recorder, event(reason="Scheduled")).is_series


def test_the_final_count_is_written_when_a_series_ends() -> None:
    time = Time()
    recorder = EventRecorder("host", time)
    for reported in (event(), event(), event(), event("q")):
        recorder.record(reported)
    assert recorder.next_wakeup_ns() == START_NS + FINISH_NS
    time.now_ns = START_NS + FINISH_NS
    assert recorder.tick() == []
    time.now_ns = START_NS + 2 * FINISH_NS
    [final] = recorder.tick()
    assert final.document["series"] == {"count": 3, "lastObservedTime": "2027-01-15T08:00:00.123456Z"}
    assert not recorded(recorder, event()).is_series
    assert not recorded(recorder, event("q")).is_series


def test_a_continuing_series_is_written_every_half_hour() -> None:
    time = Time()
    recorder = EventRecorder("host", time)
    for reported in (event(), event()):
        recorder.record(reported)
    written: list[Any] = []
    while time.now_ns < START_NS + REFRESH_NS:
        time.now_ns += FINISH_NS // 2
        recorder.record(event())
        written += [recording.document["series"] for recording in recorder.tick()]
    assert [series["count"] for series in written] == [12]


@pytest.mark.parametrize(
    ("series", "statuses", "methods", "pauses", "written"),
    [
        pytest.param(False, [201], ["POST"], 0, True, id="created"),
        pytest.param(False, [409], ["POST"], 0, False, id="an event with a name in use is dropped"),
        pytest.param(False, [403], ["POST"], 0, False, id="a forbidden event is dropped"),
        pytest.param(False, [NO_ANSWER, 201], ["POST", "POST"], 1, True, id="without an answer it is tried again"),
        pytest.param(
            False,
            [NO_ANSWER] * MAX_TRIES,
            ["POST"] * MAX_TRIES,
            MAX_TRIES - 1,
            False,
            id="a limited number of attempts",
        ),
        pytest.param(True, [200], ["PATCH"], 0, True, id="a series is patched"),
        pytest.param(True, [404, 201], ["PATCH", "POST"], 0, True, id="a series whose event is gone is created"),
        pytest.param(True, [404, 409, 200], ["PATCH", "POST", "PATCH"], 1, True, id="and patched if it exists by then"),
    ],
)
def test_event_writes_are_retried_like_upstream(
    series: bool, statuses: list[int], methods: list[str], pauses: int, written: bool
) -> None:
    recorder = EventRecorder("host", Time())
    recording = recorded(recorder, event())
    if series:
        recording = recorded(recorder, event())
    requests, waited, was_written = answered(recording, *statuses)
    assert ([method for method, _ in requests], len(waited), was_written) == (methods, pauses, written)
