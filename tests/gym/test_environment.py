"""The Gymnasium environment: Gymnasium's checker, masks, rewards, and agents with different results."""

from __future__ import annotations

import threading
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from bayplan.base.errors import InputError
from bayplan.formats.inputs import Inputs
from bayplan.gym import SchedulingEnv, random_workload

pytestmark = pytest.mark.filterwarnings("ignore")


def small(seed: int) -> Inputs:
    return random_workload(seed, nodes=3, pods=12)


def episode(env: SchedulingEnv, choose: Any, seed: int) -> tuple[float, dict[str, Any]]:
    """Run an episode; return the sum of rewards and the last info."""
    observation, info = env.reset(seed=seed)
    total, ended = 0.0, False
    while not ended:
        observation, reward, ended, _, info = env.step(choose(observation))
        total += reward
    return total, info


def first_fit(observation: dict[str, Any]) -> int:
    return int(observation["action_mask"].argmax())


def packed(observation: dict[str, Any]) -> int:
    """Return the node with the least free CPU of those that fit."""
    free = np.where(observation["action_mask"] == 1, observation["nodes"][:, 2], np.inf)
    return int(free.argmin())


def spread(observation: dict[str, Any]) -> int:
    free = np.where(observation["action_mask"] == 1, observation["nodes"][:, 2], -np.inf)
    return int(free.argmax())


@pytest.mark.parametrize("action", ["node", "weights"])
def test_the_environment_passes_the_gymnasium_checker(action: str) -> None:
    env = SchedulingEnv(small, action=action, max_nodes=4)
    check_env(env, skip_render_check=True)
    env.close()


def test_a_step_is_one_pod_with_several_feasible_nodes() -> None:
    env = SchedulingEnv(small, max_nodes=4)
    choices: list[int] = []

    def count(observation: dict[str, Any]) -> int:
        choices.append(int(observation["action_mask"].sum()))
        return first_fit(observation)

    _, info = episode(env, count, 1)
    assert min(choices) == 2
    assert 3 < len(choices) <= 12
    assert info["pending"] == 0


def test_rewards_sum_to_the_negative_waiting_time() -> None:
    env = SchedulingEnv(small, max_nodes=4, wait_scale_s=1.0)
    total, info = episode(env, spread, 3)
    assert -total == pytest.approx(12 * info["mean_wait_s"])


def test_the_same_seed_and_actions_give_the_same_episode() -> None:
    env = SchedulingEnv(small, max_nodes=4)
    first, second = (episode(env, packed, 5)[0] for _ in range(2))
    assert first == second


def test_an_infeasible_node_is_penalized() -> None:
    env = SchedulingEnv(small, max_nodes=4)
    env.reset(seed=1)
    _, reward, *_ = env.step(3)  # There are three nodes, so index 3 is invalid.
    assert reward <= -1


def test_action_masks_match_the_scheduler_filters() -> None:
    env = SchedulingEnv(small, max_nodes=4)
    observation, info = env.reset(seed=1)
    assert observation["action_mask"].tolist() == [1, 1, 1, 0] == info["action_mask"].tolist()
    assert env.action_masks().tolist() == [True, True, True, False]


def test_packing_waits_less_than_spreading() -> None:
    env = SchedulingEnv(max_nodes=8)
    assert sum(episode(env, packed, seed)[0] for seed in range(3)) > sum(
        episode(env, spread, seed)[0] for seed in range(3)
    )


def test_weight_actions_place_all_pods() -> None:
    nodes, weights = SchedulingEnv(small, max_nodes=4), SchedulingEnv(small, action="weights", max_nodes=4)
    most_allocated = np.array([0, 1, 0], dtype=np.float32)
    _, info = episode(weights, lambda observation: most_allocated, 2)
    _, other = episode(nodes, packed, 2)
    assert info["pending"] == other["pending"] == 0


def test_vectorized_environments_run_together() -> None:
    made = gymnasium.make_vec(
        "Bayplan/Scheduling-v0", num_envs=2, vectorization_mode="sync", workload=small, max_nodes=4
    )
    observations, _ = made.reset(seed=1)
    assert observations["nodes"].shape == (2, 4, 4)
    for _ in range(15):
        observations, *_ = made.step(observations["action_mask"].argmax(axis=1))
    made.close()


def test_an_abandoned_episode_leaves_no_thread() -> None:
    before = threading.active_count()
    env = SchedulingEnv(small, max_nodes=4)
    env.reset(seed=1)
    env.step(0)
    env.reset(seed=2)
    env.close()
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        pytest.param({"resources": "cpu"}, r"resources: expected a tuple of names, got 'cpu'", id="a text"),
        pytest.param({"workload": "cluster.yaml"}, "workload: expected a function of the seed", id="a path"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], want: str) -> None:
    with pytest.raises(InputError, match=want):
        SchedulingEnv(**arguments)


@pytest.mark.parametrize(
    ("kind", "action", "want"),
    [
        pytest.param("node", 0.5, "expected the number of a node, got 0.5", id="a fraction"),
        pytest.param("node", np.array([1, 2]), "expected the number of a node", id="two nodes"),
        pytest.param("weights", [0.1], "expected 3 finite weights", id="one weight"),
        pytest.param("weights", [float("nan"), 0, 0], "expected 3 finite weights", id="no number"),
    ],
)
def test_wrong_actions_are_refused(kind: str, action: Any, want: str) -> None:
    env = SchedulingEnv(small, max_nodes=4, action=kind)
    env.reset(seed=1)
    with pytest.raises(InputError, match=want):
        env.step(action)
    env.close()


def test_a_workload_that_returns_no_inputs_is_refused() -> None:
    made: Any = lambda seed: ["cluster.yaml"]  # noqa: E731
    with pytest.raises(InputError, match=r"workload\(seed\): expected Inputs, got"):
        SchedulingEnv(made).reset(seed=1)


@pytest.mark.parametrize(
    ("arguments", "want"),
    [({"max_nodes": 2}, "max_nodes"), ({"workload": lambda seed: random_workload(seed, pods=0)}, "workload")],
    ids=["too many nodes", "nothing to place"],
)
def test_an_unusable_workload_is_refused(arguments: dict[str, Any], want: str) -> None:
    env = SchedulingEnv(**{"workload": small, **arguments})
    with pytest.raises(InputError, match=want):
        env.reset(seed=1)
    env.close()
