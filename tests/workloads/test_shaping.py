"""Shaping of traces: the selection of pods, their arrival times, and their run times."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bayplan.base.errors import InputError
from bayplan.formats.documents import Source
from bayplan.formats.inputs import Inputs
from bayplan.formats.manifest import LoadedObject
from bayplan.formats.manifests import ManifestLoader
from bayplan.formats.trace import TimedPod, Trace
from bayplan.objects.kinds import kind_of
from bayplan.objects.pod import Pod
from bayplan.testing import make_node, make_pod
from bayplan.workloads import shaping
from bayplan.workloads.shape import Inflation, WorkloadShape, read_shape, shaped, shaped_inputs

SECOND = 1_000_000_000
DAY = 86_400 * SECOND
HEAD = "apiVersion: bayplan.io/v1alpha1\nkind: Workload\n"
NODES = [make_node(f"n{number}").capacity(cpu="10", memory="8Gi").obj() for number in range(2)]
PODS = [
    TimedPod(
        pod=make_pod(f"p{number}").req(cpu="1").obj(),
        arrival_ns=number * SECOND,
        run_time_ns=(number + 1) * SECOND,
        gone_at_ns=100 * SECOND if number == 0 else None,
    )
    for number in range(10)
]


def draw(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def names(pods: list[TimedPod]) -> list[str]:
    return [each.pod.metadata.name for each in pods]


def test_a_sample_has_its_share_of_pods_in_order() -> None:
    found = shaping.sampled(PODS, 0.4, draw())
    assert len(found) == 4
    assert names(found) == sorted(names(found))
    assert shaping.sampled([], 0.4, draw()) == []


def test_names_of_copies_do_not_collide_with_trace_pods() -> None:
    pods = [TimedPod(pod=make_pod(name).req(cpu="1").obj(), arrival_ns=0) for name in ("web", "web-2", "web-2-2")]
    found = names(shaping.inflated(pods, NODES, "cpu", 0.75, draw()))
    assert len(set(found)) == len(found) == 15


def test_names_of_copies_do_not_collide_with_pods_of_manifests() -> None:
    trace = Trace(format="test", nodes=NODES, pods=PODS[:1])
    shape = WorkloadShape(
        api_version="bayplan.io/v1alpha1", kind="Workload", inflate=Inflation(resource="cpu", load=0.15)
    )
    loader = ManifestLoader(strict=False)
    inputs = Inputs(manifest=loader.finish(), trace=trace)
    pod = LoadedObject(kind_of(Pod), make_pod("p0-2").obj(), Source("f", 1), b"{}")
    inputs.manifest.loaded.append(pod)
    found = shaped_inputs(inputs, shape, 1, what="--workload").trace
    assert found is not None
    assert names(list(found.pods)) == ["p0", "p0-3", "p0-4"]


def test_a_trace_is_inflated_with_uniquely_named_copies() -> None:
    found = shaping.inflated(PODS, NODES, "cpu", 0.75, draw())
    assert len(found) == 15
    assert found[:10] == PODS
    assert len(set(names(found))) == 15


def test_a_trace_is_deflated_by_removing_pods() -> None:
    assert len(shaping.inflated(PODS, NODES, "cpu", 0.2, draw())) == 4


def test_a_load_for_an_unrequested_resource_is_refused() -> None:
    with pytest.raises(InputError, match=r"expected a resource that pods request \(cpu\), got"):
        shaping.inflated(PODS, NODES, "nvidia.com/gpu", 1.3, draw())


def test_poisson_arrivals_have_exponential_gaps() -> None:
    gaps = np.diff(shaping.poisson_arrivals(20_000, 5 * SECOND, draw()))
    assert gaps.min() >= 0
    assert gaps.mean() == pytest.approx(5 * SECOND, rel=0.05)
    assert gaps.std() == pytest.approx(5 * SECOND, rel=0.05)


def test_diurnal_arrivals_are_densest_in_the_first_half_of_a_period() -> None:
    times = shaping.diurnal_arrivals(50_000, 10 * SECOND, 0.8, DAY, draw())
    assert len(times) == 50_000
    assert (np.diff(times) >= 0).all()
    whole = times[times < times[-1] // DAY * DAY]
    # The mean of a sine over half a period is 2/pi.
    assert (whole % DAY < DAY // 2).mean() == pytest.approx(0.5 + 0.8 / np.pi, abs=0.02)
    assert np.diff(whole).mean() == pytest.approx(10 * SECOND, rel=0.05)


def test_a_deletion_time_shifts_with_its_arrival_time() -> None:
    found = shaping.arriving(PODS, np.arange(10, dtype=np.int64) * 7 + 5)
    assert [each.arrival_ns for each in found] == [number * 7 + 5 for number in range(10)]
    assert found[0].gone_at_ns == 100 * SECOND + 5


DISTRIBUTIONS = [
    ("exponential", shaping.exponential_times(40_000, 60 * SECOND, draw()), 60 * np.log(2)),
    ("log-normal", shaping.log_normal_times(40_000, 60 * SECOND, 1.5, draw()), 60),
    ("Pareto", shaping.pareto_times(40_000, 60 * SECOND, 2.0, draw()), 60 * np.sqrt(2)),
]


@pytest.mark.parametrize(("times", "median"), [pytest.param(*case[1:], id=case[0]) for case in DISTRIBUTIONS])
def test_run_times_have_the_median_of_their_distribution(times: shaping.Times, median: float) -> None:
    assert np.median(times) == pytest.approx(median * SECOND, rel=0.03)


def test_drawn_run_times_never_overflow() -> None:
    times = shaping.pareto_times(10_000, 3600 * SECOND, 0.5, draw())
    assert times.min() >= 3600 * SECOND
    assert times.max() == shaping.MAX_TIME_NS


@pytest.mark.parametrize(
    ("text", "field"),
    [
        pytest.param("arrivals: {interval: 365000d}", "$.arrivals.interval", id="poisson"),
        pytest.param("arrivals: {process: diurnal, interval: 365000d}", "$.arrivals.interval", id="diurnal"),
        pytest.param("timeScale: 1e9", "$.timeScale", id="scaled"),
        pytest.param("timeScale: 1e300", "$.timeScale", id="scaled beyond a double"),
    ],
)
def test_arrivals_beyond_the_range_are_refused(text: str, field: str, tmp_path: Path) -> None:
    path = tmp_path / "shape.yaml"
    path.write_text(f"{HEAD}{text}\n")
    with pytest.raises(InputError) as caught:
        shaped(Trace(format="test", nodes=NODES, pods=PODS), read_shape(path), 1)
    assert str(caught.value) == f"{field} of the workload: expected arrivals within 100 years, got later arrivals"


def test_scaled_run_times_and_deletions_never_overflow() -> None:
    pod = make_pod("p").obj()
    [found] = shaping.scaled([TimedPod(pod=pod, arrival_ns=0, run_time_ns=SECOND, gone_at_ns=SECOND)], 1e300)
    assert (found.run_time_ns, found.gone_at_ns) == (shaping.MAX_TIME_NS, 2 * shaping.MAX_TIME_NS)


def test_observed_run_times_are_drawn_from_the_trace() -> None:
    assert set(shaping.observed_times(PODS, 1000, draw())) == {each.run_time_ns for each in PODS}


def test_pods_with_run_times_have_no_deletion_time() -> None:
    found = shaping.running(PODS, np.full(10, 3, dtype=np.int64))
    assert {(each.run_time_ns, each.gone_at_ns) for each in found} == {(3, None)}


def test_all_times_are_scaled() -> None:
    found = shaping.scaled(PODS, 0.5)
    assert (found[0].gone_at_ns, found[9].arrival_ns, found[9].run_time_ns) == (50 * SECOND, 4.5 * SECOND, 5 * SECOND)


def shape_file(folder: Path, text: str) -> Path:
    path = folder / "w.yaml"
    path.write_text(HEAD + text, encoding="utf-8")
    return path


def test_shaping_is_reproducible_and_steps_use_independent_random_streams(tmp_path: Path) -> None:
    trace = Trace(format="test", nodes=NODES, pods=PODS)
    both = "inflate: {resource: cpu, load: 0.9}\narrivals: {interval: 3s}\n"
    shape = read_shape(shape_file(tmp_path, both))
    assert shaped(trace, shape, 7).pods == shaped(trace, shape, 7).pods
    assert shaped(trace, shape, 7).pods != shaped(trace, shape, 8).pods
    more = read_shape(shape_file(tmp_path, f"{both}runTimes: {{distribution: observed}}\n"))
    arrivals = [each.arrival_ns for each in shaped(trace, shape, 7).pods]
    assert [each.arrival_ns for each in shaped(trace, more, 7).pods] == arrivals


MISTAKES = [
    ("a misspelt field", "sampel: 0.5", "3 Workload $.sampel: got an unknown field; try 'sample'"),
    ("a time scale of 0", "timeScale: 0", "3 Workload $.timeScale: expected a number above 0, got 0"),
    ("a share above 1", "sample: 2", "3 Workload $.sample: expected a number of at most 1, got 2"),
    (
        "a distribution without its parameter",
        "runTimes: {distribution: pareto}",
        "3 Workload $.runTimes.minimum: expected a duration for distribution pareto, got none",
    ),
    (
        "no interval at all",
        "arrivals: {interval: 0s}",
        "3 Workload $.arrivals.interval: expected a duration above 0, got '0s'",
    ),
]


@pytest.mark.parametrize(("text", "message"), [pytest.param(*case[1:], id=case[0]) for case in MISTAKES])
def test_an_invalid_shape_is_refused_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    path = shape_file(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_shape(path)
    assert str(caught.value) == f"{path}:{message}"
