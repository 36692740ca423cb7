"""The environment. Each step places one pod; the action is a node, or weights for the scoring rules."""

from __future__ import annotations

from operator import index
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from bayplan.base.durations import SECOND_NS
from bayplan.base.errors import InputError
from bayplan.formats.inputs import Inputs
from bayplan.gym.episode import Episode, Question
from bayplan.gym.workloads import Workload, random_workload
from bayplan.sim.result import PodFate
from bayplan.state.arrays import Floats, Index
from bayplan.state.pod_info import FIRST_RESOURCE

RULES = ("LeastAllocated", "MostAllocated", "BalancedAllocation")
"""The scoring rules that the weights apply to. Their formulas are those of kube-scheduler, without rounding."""

ACTIONS = ("node", "weights")
INVALID_ACTION_REWARD = -1.0
MAX_SHARE = 2.0
"""The highest share in an observation. A share above 1 means more than the largest node has."""

_METADATA: dict[str, Any] = {"render_modes": []}


class SchedulingEnv(gymnasium.Env[dict[str, Any], Any]):
    """Schedules the pods of a workload in virtual time. The agent chooses nodes; filters, queue and retries are the scheduler's.

    Args:
        workload: the function that returns the nodes and pods of an episode for its seed.
        action: ``node`` or ``weights``.
        max_nodes: the maximum number of nodes of a workload, and the number of rows of an observation.
        resources: the resources that observations show.
        wait_scale_s: the seconds of waiting that reduce the reward by 1.

    An observation has `nodes` (float32[max_nodes, 2 * resources]: the allocatable amounts, then the free ones, relative
    to the largest node), `pod` (float32[resources]: the requests of the pod, relative to the largest node) and
    `action_mask` (int8[max_nodes]: 1 if the pod fits on the node).

    With ``node``, the action is the number of a node. If the pod does not fit on it, the reward is lower by 1, and the
    pod goes to the first node that it fits on. With ``weights``, the action is a float32 array with a weight for each
    of `RULES`; the pod goes to the node with the highest weighted sum.

    A pod that fits on only one node is placed without a step. The reward is minus the time that the pods placed since
    the last step had waited, so the rewards of an episode add up to minus the waiting time of all pods. Infos have
    `action_mask`, and at the end also `mean_wait_s` and `pending`.
    """

    metadata = _METADATA

    def __init__(
        self,
        workload: Workload = random_workload,
        *,
        action: str = "node",
        max_nodes: int = 16,
        resources: tuple[str, ...] = ("cpu", "memory"),
        wait_scale_s: float = 3600.0,
    ) -> None:
        if action not in ACTIONS:
            raise InputError("action", got=repr(action), wanted=f"one of {', '.join(ACTIONS)}")
        _check_arguments(workload, resources)
        self._workload, self._action, self._resources = workload, action, resources
        self._max_nodes, self._wait_scale_s = max_nodes, wait_scale_s
        self._episode: Episode | None = None
        self._last: dict[str, Any] = {}
        width = len(resources)
        self.observation_space = spaces.Dict(
            {
                "nodes": spaces.Box(0.0, MAX_SHARE, (max_nodes, 2 * width), np.float32),
                "pod": spaces.Box(0.0, MAX_SHARE, (width,), np.float32),
                "action_mask": spaces.Box(0, 1, (max_nodes,), np.int8),
            }
        )
        self.action_space = (
            spaces.Discrete(max_nodes) if action == "node" else spaces.Box(0.0, 1.0, (len(RULES),), np.float32)
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start an episode; return its first observation. Without a seed, one is drawn from the environment's generator.

        Raises:
            InputError: the workload returns no `Inputs`, has too many nodes, or no pod that needs a choice.
        """
        super().reset(seed=seed)
        self.close()
        drawn = int(self.np_random.integers(2**31)) if seed is None else seed
        self._episode = Episode(_inputs(self._workload(drawn)), drawn)
        self._episode.start()
        state = self._episode.state
        if state.nodes.count > self._max_nodes:
            wanted = f"at most {self._max_nodes} nodes (max_nodes)"
            raise InputError("workload", wanted=wanted, got=f"{state.nodes.count} nodes", hint="a larger max_nodes")
        if self._episode.question is None:
            raise InputError("workload: no pod fits on more than one node, so there is nothing to learn")
        return self._observe(self._episode.question)

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Place the current pod; return the next observation, the reward, and whether the episode has ended.

        Raises:
            InputError: no episode was started, or it has ended; or the action is no number of a node, or no weights.
        """
        episode = self._episode
        if episode is None or episode.question is None:
            raise InputError("step(): there is no pod to place", hint="reset() first")
        row, valid = self._row_of(action, episode.question)
        waited_ns = episode.waited_ns
        question = episode.answer(row)
        reward = 0.0 if valid else INVALID_ACTION_REWARD
        if question is not None:
            reward -= (episode.waited_ns - waited_ns) / SECOND_NS / self._wait_scale_s
            observation, info = self._observe(question)
            return observation, reward, False, False, info
        waits, pending = _waits_s(episode)
        both = [*waits, *pending]
        reward -= (sum(both) - waited_ns / SECOND_NS) / self._wait_scale_s
        info = {
            "action_mask": np.zeros(self._max_nodes, dtype=np.int8),
            "mean_wait_s": sum(both) / max(len(both), 1),
            "pending": len(pending),
        }
        return {**self._last, "action_mask": info["action_mask"]}, reward, True, False, info

    def close(self) -> None:
        """End the current episode."""
        if self._episode is not None:
            self._episode.close()
            self._episode = None

    def action_masks(self) -> Any:
        """Return the mask of the current pod as bool[max_nodes], for agents that support action masks."""
        return self._last["action_mask"].astype(np.bool_)

    # Observations and actions.

    def _observe(self, question: Question) -> tuple[dict[str, Any], dict[str, Any]]:
        assert self._episode is not None
        offered, free, wanted = self._amounts(question)
        largest = np.maximum(offered.max(axis=0), 1.0)
        nodes = np.zeros((self._max_nodes, 2 * len(self._resources)), dtype=np.float32)
        nodes[: len(offered)] = np.clip(np.hstack((offered, free)) / np.tile(largest, 2), 0, MAX_SHARE)
        mask = np.zeros(self._max_nodes, dtype=np.int8)
        mask[question.rows] = 1
        pod = np.clip(wanted / largest, 0, MAX_SHARE).astype(np.float32)
        self._last = {"nodes": nodes, "pod": pod, "action_mask": mask}
        return dict(self._last), {"action_mask": mask}

    def _amounts(self, question: Question) -> tuple[Floats, Floats, Floats]:
        """Return the allocatable and the free amounts of the nodes (float64[nodes, resources]), and the requests of the pod."""
        assert self._episode is not None
        state = self._episode.state
        count, numbers = state.nodes.count, [state.register_resource(name) for name in self._resources]
        offered = state.nodes.allocatable[numbers, :count].T.astype(np.float64)
        used = state.usage[[FIRST_RESOURCE + number for number in numbers], :count].T
        vector = state.footprint(question.pod).vector
        places = [FIRST_RESOURCE + number for number in numbers]
        wanted = np.array([vector[place] if place < len(vector) else 0 for place in places], dtype=np.float64)
        return offered, offered - used, wanted

    def _row_of(self, action: Any, question: Question) -> tuple[int, bool]:
        """Return the row that an action selects, and whether the action was valid."""
        if self._action == "node":
            row = _node_number(action)
            return (row, True) if row in question.rows else (int(question.rows[0]), False)
        scores = self.rule_scores(question.rows) @ _weights(action)
        return int(question.rows[int(scores.argmax())]), True

    def rule_scores(self, rows: Index) -> Floats:
        """Return the scores of `RULES` for the current pod on some nodes: float64[rows, rules], from 0 to 1."""
        assert self._episode is not None
        assert self._episode.question is not None
        offered, free, wanted = self._amounts(self._episode.question)
        shares = np.clip((offered - free + wanted)[rows] / np.maximum(offered[rows], 1.0), 0, 1)
        used = shares.mean(axis=1)
        scores: Floats = np.column_stack((1 - used, used, 1 - shares.std(axis=1)))
        return scores


def _check_arguments(workload: object, resources: object) -> None:
    if not callable(workload):
        hint = "lambda seed: load_inputs(['cluster.yaml'])"
        raise InputError("workload", got=f"{workload!r:.60}", wanted="a function of the seed", hint=hint)
    if isinstance(resources, str):
        raise InputError("resources", got=repr(resources), wanted="a tuple of names", hint=f"({resources!r},)")


def _inputs(found: object) -> Inputs:
    if not isinstance(found, Inputs):
        hint = "bayplan.formats.inputs.load_inputs(['cluster.yaml'])"
        raise InputError("workload(seed)", got=f"{found!r:.60}", wanted="Inputs", hint=hint)
    return found


def _node_number(action: Any) -> int:
    try:
        return index(action.item() if isinstance(action, np.ndarray) and action.size == 1 else action)
    except TypeError:
        raise InputError("step(action)", got=f"{action!r:.60}", wanted="the number of a node") from None


def _weights(action: Any) -> Floats:
    try:
        weights: Floats = np.asarray(action, dtype=np.float64)
    except (TypeError, ValueError):
        weights = np.empty(0)
    if weights.shape != (len(RULES),) or not np.isfinite(weights).all():
        wanted = f"{len(RULES)} finite weights, for {', '.join(RULES)}"
        raise InputError("step(action)", got=f"{action!r:.60}", wanted=wanted)
    return weights


def _waits_s(episode: Episode) -> tuple[list[float], list[float]]:
    """Return the waiting times of the pods that got a node, and of those still pending."""
    assert episode.result is not None
    result = episode.result
    waits = [pod.wait_ns / SECOND_NS for pod in result.pods if pod.wait_ns is not None]
    left = [pod for pod in result.pods if pod.fate is PodFate.PENDING]
    return waits, [(result.end_ns - pod.arrived_ns) / SECOND_NS for pod in left]
