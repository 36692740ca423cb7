"""The file that describes changes of a workload, and their application to a trace."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta

from bayplan.base.errors import InputError
from bayplan.base.long_durations import read_long_duration
from bayplan.base.random_streams import stream_seed
from bayplan.formats.documents import Document
from bayplan.formats.inputs import Inputs
from bayplan.formats.trace import TimedPod, Trace
from bayplan.formats.typed_documents import Part, placed, read_single, read_typed
from bayplan.workloads import shaping

API_VERSION = "bayplan.io/v1alpha1"
KIND = "Workload"
Positive: TypeAlias = Annotated[float, Meta(gt=0.0)]


class Inflation(Part, frozen=True, kw_only=True):
    """Repeat or remove pods until they request `load` times the nodes' allocatable amount of a resource."""

    resource: str
    load: Positive


class Arrivals(Part, frozen=True, kw_only=True):
    """New arrival times, from a Poisson process. With ``diurnal``, its rate rises and falls by `amplitude` in each `period`."""

    process: Literal["poisson", "diurnal"] = "poisson"
    interval: str
    amplitude: Annotated[float, Meta(ge=0.0, le=1.0)] = 0.8
    period: str = "1d"


class RunTimes(Part, frozen=True, kw_only=True):
    """New run times: exponential has `mean`, logNormal `median` and `sigma`, pareto `minimum` and `alpha`; observed has none."""

    distribution: Literal["exponential", "logNormal", "pareto", "observed"]
    mean: str | None = None
    median: str | None = None
    sigma: Positive = 1.0
    minimum: str | None = None
    alpha: Positive = 2.0


class WorkloadShape(Part, frozen=True, kw_only=True):
    """The changes of a trace. They are made in the order of the fields."""

    api_version: Literal["bayplan.io/v1alpha1"]
    kind: Literal["Workload"]
    sample: Annotated[float, Meta(gt=0.0, le=1.0)] = 1.0
    inflate: Inflation | None = None
    arrivals: Arrivals | None = None
    run_times: RunTimes | None = None
    time_scale: Positive = 1.0


def read_shape(path: Path) -> WorkloadShape:
    """Read the file of a workload shape.

    Raises:
        InputError: the file cannot be read, or is not a Workload; the message has file and line.
    """
    return shape_of(read_single(path, kind=KIND))


def shape_of(document: Document) -> WorkloadShape:
    """Return the shape that a document describes.

    Raises:
        InputError: the document is invalid; the message has file and line.
    """
    shape = read_typed(document, WorkloadShape, kind=KIND, api_version=API_VERSION)
    try:
        if shape.arrivals is not None:
            _duration(shape.arrivals.interval, "$.arrivals.interval")
            _duration(shape.arrivals.period, "$.arrivals.period")
        if shape.run_times is not None:
            _length(shape.run_times)
    except InputError as problem:
        raise placed(problem, document) from None
    return shape


def shaped_inputs(
    inputs: Inputs, shape: WorkloadShape | None, seed: int, *, what: str, taken: Iterable[str] = ()
) -> Inputs:
    """Return the inputs with the trace changed by a shape; the same inputs without a shape.

    Args:
        inputs: the inputs.
        shape: the shape; None for no changes.
        seed: the seed of the run.
        what: the option or field that names the shape, for error messages.
        taken: the keys of pods that are created later, which copies must not have.

    Raises:
        InputError: the input has no trace, or the trace lacks data that a change needs.
    """
    if shape is None:
        return inputs
    if inputs.trace is None:
        raise InputError(what, wanted="a trace in the input", got="only manifests")
    keys = (*(pod.key for pod in inputs.manifest.pods), *taken)
    return msgspec.structs.replace(inputs, trace=shaped(inputs.trace, shape, seed, keys))


def shaped(trace: Trace, shape: WorkloadShape, seed: int, taken: Iterable[str] = ()) -> Trace:
    """Return the trace with the changes of a shape. Each change draws from its own random stream.

    Args:
        trace: the trace, with its nodes.
        shape: the shape.
        seed: the seed of the run.
        taken: the keys of pods outside of the trace, which copies must not have.

    Raises:
        InputError: the trace lacks data that a change needs.
    """

    def draw(name: str) -> np.random.Generator:
        return np.random.default_rng(stream_seed(seed, f"workload.{name}"))

    pods: list[TimedPod] = list(trace.pods)
    if shape.sample < 1.0:
        pods = shaping.sampled(pods, shape.sample, draw("sample"))
    if shape.inflate is not None:
        resource, load = shape.inflate.resource, shape.inflate.load
        pods = shaping.inflated(pods, trace.nodes, resource, load, draw("inflate"), taken)
    if shape.arrivals is not None:
        pods = shaping.arriving(pods, _arrivals(shape.arrivals, len(pods), draw("arrivals")))
    if shape.run_times is not None:
        pods = shaping.running(pods, _run_times(shape.run_times, pods, draw("run_times")))
    if shape.time_scale != 1.0:
        pods = shaping.scaled(pods, shape.time_scale)
    return msgspec.structs.replace(trace, pods=pods)


def _arrivals(spec: Arrivals, count: int, draw: np.random.Generator) -> shaping.Times:
    interval_ns = _duration(spec.interval, "$.arrivals.interval")
    if spec.process == "poisson":
        return shaping.poisson_arrivals(count, interval_ns, draw)
    period_ns = _duration(spec.period, "$.arrivals.period")
    return shaping.diurnal_arrivals(count, interval_ns, spec.amplitude, period_ns, draw)


def _run_times(spec: RunTimes, pods: list[TimedPod], draw: np.random.Generator) -> shaping.Times:
    count = len(pods)
    if spec.distribution == "observed":
        return shaping.observed_times(pods, count, draw)
    length_ns = _length(spec)
    if spec.distribution == "exponential":
        return shaping.exponential_times(count, length_ns, draw)
    if spec.distribution == "logNormal":
        return shaping.log_normal_times(count, length_ns, spec.sigma, draw)
    return shaping.pareto_times(count, length_ns, spec.alpha, draw)


def _length(spec: RunTimes) -> int:
    """Return the mean, median or minimum of a distribution in nanoseconds; 0 for ``observed``."""
    lengths = {"exponential": "mean", "logNormal": "median", "pareto": "minimum"}
    name = lengths.get(spec.distribution)
    if name is None:
        return 0
    text: str | None = getattr(spec, name)
    if text is None:
        raise InputError(
            f"{KIND} $.runTimes.{name}", wanted=f"a duration for distribution {spec.distribution}", got="none"
        )
    return _duration(text, f"$.runTimes.{name}")


def _duration(text: str, path: str) -> int:
    found = read_long_duration(text, what=f"{KIND} {path}")
    if not found:
        raise InputError(f"{KIND} {path}", wanted="a duration above 0", got=repr(text))
    return found
