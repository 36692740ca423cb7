"""Pure functions over the pods of a trace: take a sample, inflate the load, and draw arrival and run times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from bayplan.base.durations import DAY_NS
from bayplan.base.errors import InputError
from bayplan.formats.trace import TimedPod
from bayplan.objects.node import Node
from bayplan.objects.requests import accounted_requests, node_amounts

Times = npt.NDArray[np.int64]
"""Times or durations, in nanoseconds."""

Draw: TypeAlias = "np.random.Generator"
"""A quoted name, because NumPy imports its random generators when they are first named."""

MAX_TIME_NS = 100 * 365 * DAY_NS
"""Longest drawn or scaled run time, and latest arrival: a pod that starts then ends at a time that an int64 can hold."""


# --- pods -------------------------------------------------------------------------------------------------------------


def sampled(pods: Sequence[TimedPod], share: float, draw: Draw) -> list[TimedPod]:
    """Return a random share of the pods, in their order.

    Args:
        pods: the pods of a trace.
        share: the share from 0 to 1.
        draw: the source of randomness.
    """
    chosen = draw.choice(len(pods), size=round(len(pods) * share), replace=False) if pods else ()
    return [pods[index] for index in sorted(int(each) for each in chosen)]


def inflated(
    pods: Sequence[TimedPod], nodes: Iterable[Node], resource: str, load: float, draw: Draw, taken: Iterable[str] = ()
) -> list[TimedPod]:
    """Return pods whose requests of a resource reach a share of the nodes' allocatable amount.

    If the pods request less, all are kept, and copies of random pods are added under new names until their requests
    reach the share. If they request more, random pods are kept until their requests reach it.

    Args:
        pods: the pods of a trace.
        nodes: the nodes that offer the resource.
        resource: the name of the resource.
        load: the share; 1.3 is 130 %.
        draw: the source of randomness.
        taken: the keys of other pods, which copies must not have.

    Raises:
        InputError: no pod requests the resource, or no node offers it.
    """
    amounts = [accounted_requests(each.pod).requests.get(resource, 0) for each in pods]
    offered = sum(node_amounts(node.status.allocatable).get(resource, 0) for node in nodes)
    total, wanted = sum(amounts), load * offered
    if not total:
        names = sorted({name for each in pods for name in accounted_requests(each.pod).requests})
        expected = f"a resource that pods request ({', '.join(names) or 'none'})"
        raise InputError("$.inflate.resource of the workload", got=f"'{resource}'", wanted=expected)
    if not offered:
        raise InputError(f"$.inflate.resource of the workload: no node offers {resource}")
    if total > wanted:
        found, kept = 0, []
        for index in draw.permutation(len(pods)):
            if found >= wanted:
                break
            found += amounts[index]
            kept.append(int(index))
        return [pods[index] for index in sorted(kept)]
    result = list(pods)
    copies: dict[str, int] = {}
    used = {each.pod.key for each in pods}.union(taken)
    while total < wanted:
        index = int(draw.integers(len(pods)))
        model = pods[index]
        copy = model.pod
        while copy.key in used:
            number = copies[model.pod.key] = copies.get(model.pod.key, 1) + 1
            metadata = replace(model.pod.metadata, name=f"{model.pod.metadata.name}-{number}", uid="")
            copy = replace(model.pod, metadata=metadata)
        used.add(copy.key)
        result.append(replace(model, pod=copy))
        total += amounts[index]
    return result


# --- times ------------------------------------------------------------------------------------------------------------


def poisson_arrivals(count: int, interval_ns: float, draw: Draw) -> Times:
    """Return the arrival times of a Poisson process, in ascending order.

    Args:
        count: the number of arrivals.
        interval_ns: the mean time between two arrivals.
        draw: the source of randomness.

    Raises:
        InputError: a pod would arrive after `MAX_TIME_NS`.
    """
    return _checked(np.cumsum(draw.exponential(interval_ns, count)))


def diurnal_arrivals(count: int, interval_ns: float, amplitude: float, period_ns: int, draw: Draw) -> Times:
    """Return the arrival times of a Poisson process whose rate follows a sine, in ascending order.

    Args:
        count: the number of arrivals.
        interval_ns: the mean time between two arrivals, over whole periods.
        amplitude: the amplitude from 0 to 1, relative to the mean rate.
        period_ns: the period of the sine, usually a day.
        draw: the source of randomness.

    Raises:
        InputError: a pod would arrive after `MAX_TIME_NS`.
    """
    found: list[Times] = []
    now, left = 0.0, count
    while left > 0:
        # Thinning: draw arrivals at the highest rate, and accept each with the ratio of the rate at its time to the
        # highest.
        times = now + np.cumsum(draw.exponential(interval_ns / (1 + amplitude), 2 * left + 16))
        rates = (1 + amplitude * np.sin(2 * np.pi * times / period_ns)) / (1 + amplitude)
        kept = times[draw.random(len(times)) < rates][:left]
        found.append(_checked(kept))
        now, left = float(times[-1]), left - len(kept)
    return np.concatenate(found) if found else np.empty(0, dtype=np.int64)


def _checked(arrivals: npt.NDArray[np.float64]) -> Times:
    """Return arrival times, which ascend, in whole nanoseconds."""
    if len(arrivals) and arrivals[-1] > MAX_TIME_NS:
        raise _late("$.arrivals.interval")
    return arrivals.astype(np.int64)


def _late(field: str) -> InputError:
    years = MAX_TIME_NS // (365 * DAY_NS)
    return InputError(f"{field} of the workload", wanted=f"arrivals within {years} years", got="later arrivals")


def arriving(pods: Sequence[TimedPod], arrivals: Times) -> list[TimedPod]:
    """Return the pods with new arrival times. The order of arrival stays, and deletion times move along."""
    order = sorted(range(len(pods)), key=lambda index: (pods[index].arrival_ns, index))
    found = list(pods)
    for index, time in zip(order, arrivals.tolist(), strict=True):
        pod = pods[index]
        gone = None if pod.gone_at_ns is None else pod.gone_at_ns - pod.arrival_ns + time
        found[index] = replace(pod, arrival_ns=time, gone_at_ns=gone)
    return found


def running(pods: Sequence[TimedPod], run_times: Times) -> list[TimedPod]:
    """Return the pods with new run times. No pod is deleted at a fixed time any more."""
    return [
        replace(pod, run_time_ns=run_time, gone_at_ns=None)
        for pod, run_time in zip(pods, run_times.tolist(), strict=True)
    ]


def exponential_times(count: int, mean_ns: float, draw: Draw) -> Times:
    """Return exponentially distributed run times."""
    return _whole(draw.exponential(mean_ns, count))


def log_normal_times(count: int, median_ns: float, sigma: float, draw: Draw) -> Times:
    """Return log-normally distributed run times; `sigma` is the standard deviation of their logarithms."""
    return _whole(median_ns * np.exp(sigma * draw.standard_normal(count)))


def pareto_times(count: int, minimum_ns: float, alpha: float, draw: Draw) -> Times:
    """Return Pareto distributed run times, which have a heavy tail; `alpha` is the exponent."""
    return _whole(minimum_ns * (1 + draw.pareto(alpha, count)))


def _whole(values: npt.NDArray[np.float64]) -> Times:
    """Return run times in whole nanoseconds, at most `MAX_TIME_NS`: longer ones would overflow."""
    return np.minimum(values, MAX_TIME_NS).astype(np.int64)


def observed_times(pods: Sequence[TimedPod], count: int, draw: Draw) -> Times:
    """Return run times that are drawn, with replacement, from the run times of pods.

    Raises:
        InputError: no pod has a run time.
    """
    known = np.array([pod.run_time_ns for pod in pods if pod.run_time_ns is not None], dtype=np.int64)
    if not len(known):
        raise InputError("run times", wanted="a trace with run times", got="none")
    return draw.choice(known, size=count)


def scaled(pods: Sequence[TimedPod], factor: float) -> list[TimedPod]:
    """Return the pods with all times multiplied by a factor; 0.5 makes everything happen twice as fast.

    Raises:
        InputError: a pod would arrive after `MAX_TIME_NS`.
    """
    if any(pod.arrival_ns * factor > MAX_TIME_NS for pod in pods):
        raise _late("$.timeScale")

    def times(value: int | None, most: int) -> int | None:
        return None if value is None else round(min(value * factor, most))

    return [
        replace(
            pod,
            arrival_ns=round(pod.arrival_ns * factor),
            run_time_ns=times(pod.run_time_ns, MAX_TIME_NS),
            gone_at_ns=times(pod.gone_at_ns, 2 * MAX_TIME_NS),
        )
        for pod in pods
    ]
