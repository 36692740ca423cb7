"""Fixtures of these tests: a folder with a cluster and a sweep, and its plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.sweeps.plan import SweepPlan, read_plan
from tests.sweeps.sweeps import CLUSTER, SWEEP


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    return tmp_path


@pytest.fixture
def plan(folder: Path) -> SweepPlan:
    return read_plan(folder / "sweep.yaml")
