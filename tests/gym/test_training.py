"""The example of docs/gym.md: with an agent after a short training, pods wait less than with random choices."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

TRAIN = Path(__file__).resolve().parents[2] / "examples" / "gym" / "train.py"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_trained_agent_waits_less_than_a_random_one() -> None:
    waits = runpy.run_path(str(TRAIN))["main"](["--seconds", "10", "--episodes", "4"])
    assert waits["trained agent"] < waits["random"]
