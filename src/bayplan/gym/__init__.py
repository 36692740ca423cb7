"""A Gymnasium environment in which an agent schedules the pods of a simulated cluster (docs/gym.md).

Importing this package registers ``Bayplan/Scheduling-v0``.
"""

from __future__ import annotations

from bayplan.base.extras import named_extras

with named_extras():
    import gymnasium

from bayplan.gym.environment import SchedulingEnv
from bayplan.gym.workloads import Workload, random_workload

__all__ = ["SchedulingEnv", "Workload", "random_workload"]

ENVIRONMENT = "Bayplan/Scheduling-v0"

if ENVIRONMENT not in gymnasium.registry:
    gymnasium.register(ENVIRONMENT, entry_point="bayplan.gym.environment:SchedulingEnv")
