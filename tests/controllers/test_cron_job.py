"""CronJobs: times, names, concurrency, deadlines, history."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.base.errors import InputError
from bayplan.controllers.cron_job import following_time, latest_time
from bayplan.controllers.cron_schedule import CronSchedule, parse_cron_schedule
from bayplan.objects.workloads import CronJob, Job
from tests.cluster.cluster_fixture import SECOND, ClusterFixture, template, workload

MINUTE = 60 * SECOND


def tick(schedule: str = "* * * * *", *, run_time: str = "10s", exit_code: int = 0, **spec: Any) -> dict[str, Any]:
    annotations = {"bayplan.io/run-time": run_time, "bayplan.io/exit-code": str(exit_code)}
    body = {"spec": {"template": template(annotations=annotations, restartPolicy="Never"), "backoffLimit": 0}}
    document = workload("CronJob", "tick", schedule=schedule, jobTemplate=body, **spec)
    del document["spec"]["template"]
    return document


def stored(fixture: ClusterFixture) -> CronJob:
    found = fixture.store.get(CronJob, "default/tick")
    assert found is not None
    return found


def jobs(fixture: ClusterFixture) -> list[str]:
    return [item.metadata.name for item in fixture.store.all(Job)]


@pytest.mark.parametrize(
    ("schedule", "until", "want"),
    [
        pytest.param("* * * * *", 180, ["tick-1", "tick-2", "tick-3"], id="every minute"),
        pytest.param("*/5 * * * *", 600, ["tick-5", "tick-10"], id="every five minutes"),
        pytest.param("@hourly", 7200, ["tick-60", "tick-120"], id="every hour"),
        pytest.param("@every 90s", 270, ["tick-1", "tick-3", "tick-4"], id="every 90 seconds"),
        pytest.param("0 0 1 1 *", 86_400, [], id="not today"),
    ],
)
def test_jobs_are_created_on_schedule(schedule: str, until: int, want: list[str]) -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(tick(schedule, successfulJobsHistoryLimit=9))
    fixture.run_until(until)
    assert fixture.added(Job) == want


def test_a_job_has_its_scheduled_time_owner_and_template_fields() -> None:
    fixture = ClusterFixture(nodes=1)
    document = tick()
    document["spec"]["jobTemplate"]["metadata"] = {"labels": {"team": "x"}, "annotations": {"a": "b"}}
    fixture.apply(document)
    fixture.run_until(60)
    [item] = fixture.store.all(Job)
    assert item.metadata.labels == {"team": "x"}
    assert item.metadata.annotations == {
        "a": "b",
        "batch.kubernetes.io/cronjob-scheduled-timestamp": "1970-01-01T00:01:00Z",
    }
    [owner] = item.metadata.owner_references
    assert (owner.kind, owner.name, owner.controller) == ("CronJob", "tick", True)
    assert (item.spec.backoff_limit, item.spec.completions, item.metadata.generation) == (0, 1, 1)
    status = stored(fixture).status
    assert status.last_schedule_time == "1970-01-01T00:01:00Z"
    assert [(reference.kind, reference.name, reference.uid) for reference in status.active] == [
        ("Job", "tick-1", item.metadata.uid)
    ]
    fixture.run_until(70)
    assert stored(fixture).status.active == ()
    assert stored(fixture).status.last_successful_time == "1970-01-01T00:01:10Z"


def test_the_schedule_uses_the_time_zone_of_the_cron_job() -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(tick("45 5 * * *", timeZone="Asia/Kathmandu"))
    fixture.run_until(86_400)
    # In 1970, the offset of this time zone was five and a half hours.
    [item] = fixture.store.all(Job)
    assert item.metadata.name == "tick-15"
    scheduled = item.metadata.annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    assert scheduled == "1970-01-01T05:45:00+05:30"


@pytest.mark.parametrize(
    ("policy", "want"),
    [
        pytest.param("Allow", (["tick-1", "tick-2", "tick-3"], ["tick-1", "tick-2", "tick-3"]), id="side by side"),
        pytest.param("Forbid", (["tick-1"], ["tick-1"]), id="one has to end before the next"),
        pytest.param(
            "Replace", (["tick-3"], ["tick-1", "tick-2", "tick-3"]), id="the next takes the place of the last"
        ),
    ],
)
def test_the_concurrency_policy_allows_forbids_or_replaces_overlapping_jobs(
    policy: str, want: tuple[list[str], list[str]]
) -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(tick(run_time="10m", concurrencyPolicy=policy))
    fixture.run_until(180)
    assert (jobs(fixture), fixture.added(Job)) == want
    assert [reference.name for reference in stored(fixture).status.active] == want[0]
    assert len(fixture.pods()) == len(want[0])


def test_a_forbidden_job_starts_when_the_previous_one_ends() -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(tick(run_time="90s", concurrencyPolicy="Forbid"))
    fixture.run_until(149)
    assert fixture.added(Job) == ["tick-1"]
    fixture.run_until(150)
    assert fixture.added(Job) == ["tick-1", "tick-2"]


@pytest.mark.parametrize(
    ("deadline", "want"),
    [
        pytest.param(None, ["tick-10"], id="the latest time is made up for, not all"),
        pytest.param(300, ["tick-10"], id="within the deadline"),
        pytest.param(10, [], id="too late"),
    ],
)
def test_only_the_latest_missed_run_starts_within_the_deadline(deadline: int | None, want: list[str]) -> None:
    fixture = ClusterFixture(nodes=1)
    spec: dict[str, Any] = {} if deadline is None else {"startingDeadlineSeconds": deadline}
    fixture.apply(tick(suspend=True, **spec))
    fixture.run_until(630)
    fixture.apply(tick(suspend=False, **spec))
    fixture.settle()
    assert fixture.added(Job) == want


def test_a_suspended_cron_job_creates_no_jobs() -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(tick(suspend=True))
    fixture.run_until(600)
    assert fixture.added(Job) == []


@pytest.mark.parametrize(
    ("exit_code", "limits", "want"),
    [
        pytest.param(0, {}, ["tick-3", "tick-4", "tick-5"], id="three that succeeded are kept"),
        pytest.param(1, {}, ["tick-5"], id="one that failed is kept"),
        pytest.param(0, {"successfulJobsHistoryLimit": 1}, ["tick-5"], id="fewer"),
        pytest.param(0, {"successfulJobsHistoryLimit": 0}, [], id="none"),
    ],
)
def test_finished_jobs_are_deleted_above_the_history_limits(
    exit_code: int, limits: dict[str, Any], want: list[str]
) -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(tick(exit_code=exit_code, **limits))
    fixture.run_until(330)
    assert jobs(fixture) == want
    assert len(fixture.pods()) == len(want)


def test_a_changed_schedule_takes_effect() -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(tick("0 * * * *"))
    fixture.run_until(100)
    fixture.apply(tick("* * * * *"))
    fixture.run_until(240)
    assert fixture.added(Job) == ["tick-1", "tick-2", "tick-3", "tick-4"]


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({"schedule": "often"}, "exactly 5 fields", id="no schedule"),
        pytest.param({"timeZone": "Moon/Sea"}, "an IANA time zone", id="no time zone"),
        pytest.param({"schedule": "0 0 31 2 *"}, "a schedule with an existing date", id="a date that does not exist"),
    ],
)
def test_invalid_schedules_and_time_zones_are_reported(spec: dict[str, Any], want: str) -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(tick(**spec))
    fixture.settle()
    assert want in str(fixture.cluster.failures()["CronJob default/tick"])


def test_a_job_with_a_conflicting_name_is_not_adopted() -> None:
    fixture = ClusterFixture(nodes=1)
    stranger = workload("Job", "tick-1", suspend=True)
    fixture.apply(stranger, tick())
    fixture.run_until(120)
    assert fixture.added(Job) == ["tick-1", "tick-2"]
    assert [reference.name for reference in stored(fixture).status.active] == ["tick-2"]


def last_scheduled(schedule: CronSchedule, after_ns: int, now_ns: int) -> int | None:
    """Return the last time of a schedule in an interval, found by visiting each one, or None."""
    last: int | None = None
    time_ns = schedule.next_after(after_ns)
    while time_ns is not None and time_ns <= now_ns:
        last, time_ns = time_ns, schedule.next_after(time_ns)
    return last


@given(after=st.integers(0, 10**6), gap=st.integers(0, 10**6))
def test_latest_time_returns_the_last_time_of_an_evenly_spaced_schedule(after: int, gap: int) -> None:
    schedule, after_ns, now_ns = parse_cron_schedule("*/5 * * * *"), after * SECOND, (after + gap) * SECOND
    assert latest_time(schedule, after_ns, now_ns) == last_scheduled(schedule, after_ns, now_ns)


@given(after=st.integers(0, 10**6), gap=st.integers(0, 10**6))
def test_latest_time_misses_times_only_where_the_spacing_changes(after: int, gap: int) -> None:
    # From minute 56 to minute 0, the spacing is 4 minutes instead of 7.
    schedule, after_ns, now_ns = parse_cron_schedule("*/7 * * * *"), after * SECOND, (after + gap) * SECOND
    got = latest_time(schedule, after_ns, now_ns)
    if got is not None or after // 3600 == (after + gap) // 3600:
        assert got == last_scheduled(schedule, after_ns, now_ns)


def test_latest_time_returns_none_if_the_estimate_is_too_late() -> None:
    # From 00:49 to 01:04: the first two times, 00:49 and 00:56, suggest a later one than 01:00.
    schedule = parse_cron_schedule("*/7 * * * *")
    assert last_scheduled(schedule, 2940 * SECOND, 3840 * SECOND) == 3600 * SECOND
    assert latest_time(schedule, 2940 * SECOND, 3840 * SECOND) is None


def test_latest_time_refuses_a_schedule_that_is_never_due() -> None:
    with pytest.raises(InputError, match="never matches a date"):
        latest_time(parse_cron_schedule("0 0 31 2 *"), 0, 0)


@pytest.mark.parametrize(
    ("since", "now", "want"),
    [
        pytest.param(0, 30, 90, id="none yet: counted from the beginning"),
        pytest.param(0, 100, 180, id="counted from the time that was due, not from the current time"),
        pytest.param(90, 90, 180, id="just now"),
    ],
)
def test_following_time_counts_every_90_seconds_from_the_time_due(since: int, now: int, want: int) -> None:
    assert following_time(parse_cron_schedule("@every 90s"), since * SECOND, now * SECOND) == want * SECOND
