"""Small plugins for tests of the registry and of profiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.plugin import (
    FilterPlugin,
    Handle,
    Params,
    Plugin,
    PreFilterPlugin,
    ReservePlugin,
    ScorePlugin,
)
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Codes, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows


@dataclass(frozen=True)
class Spec:
    key: str = ""


class Filters(FilterPlugin[Spec]):
    name = "Filters"

    def compile(self, pod: Pod, cluster: ClusterState) -> Spec:
        return Spec()

    def filter(self, spec: Spec, params: Params | None, rows: Rows) -> Codes:
        return np.zeros(len(rows), dtype=np.uint16)


class Scores(ScorePlugin[Spec]):
    name = "Scores"

    def compile(self, pod: Pod, cluster: ClusterState) -> Spec:
        return Spec()

    def score(self, spec: Spec, params: Params | None, rows: Rows) -> Ints:
        return np.full(len(rows), 1, dtype=np.int64)


class Both(PreFilterPlugin[Spec], Filters, Scores, ReservePlugin[Spec]):
    name = "Both"


class Idle(Plugin[Spec]):
    name = "Idle"


def make_handle() -> Handle:
    return Handle(ClusterState(), FeatureGates())
