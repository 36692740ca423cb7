"""Train an agent that chooses nodes, and compare it with random choices and with kube-scheduler's default profile.

The agent scores each node by a weighted sum of four features and chooses the best node that the mask allows. The
cross-entropy method finds the weights: it draws some, selects the best quarter, and draws the next ones around these.
Takes two minutes.
"""

import argparse
import time

import numpy as np

from bayplan.app.simulation import SimulationOptions, prepare_simulation
from bayplan.gym import SchedulingEnv, random_workload

TEST_SEEDS = range(1000, 1010)
POPULATION, ELITE, EPISODES = 16, 4, 2


def features(observation):
    """Return float[nodes, 4]: the CPU and memory that would remain, their difference, and whether the node is empty."""
    nodes, pod = observation["nodes"], observation["pod"]
    offered, free = nodes[:, :2], nodes[:, 2:]
    left = free - pod
    empty = (free >= offered).all(axis=1)
    return np.column_stack((left, np.abs(left[:, 0] - left[:, 1]), empty))


def choose(observation, weights):
    """Return the index of the feasible node with the highest score."""
    scores = features(observation) @ weights
    return int(np.where(observation["action_mask"] == 1, scores, -np.inf).argmax())


def mean_wait_s(env, policy, seeds):
    """Return the mean waiting time of pods with a policy, in seconds."""
    waits = []
    for seed in seeds:
        observation, _ = env.reset(seed=seed)
        ended = False
        while not ended:
            observation, _, ended, _, info = env.step(policy(observation))
        waits.append(info["mean_wait_s"])
    return float(np.mean(waits))


def train(env, seconds, seed=0):
    """Return the weights with the shortest waiting times in training."""
    random = np.random.default_rng(seed)
    mean, spread = np.zeros(4), np.ones(4)
    end, generation = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        seeds = range(generation * EPISODES, (generation + 1) * EPISODES)
        drawn = mean + spread * random.standard_normal((POPULATION, 4))
        waits = [mean_wait_s(env, lambda each, weights=weights: choose(each, weights), seeds) for weights in drawn]
        best = drawn[np.argsort(waits)[:ELITE]]
        mean, spread = best.mean(axis=0), best.std(axis=0) + 0.05
        generation += 1
    print(f"{generation} generations, weights {np.round(mean, 2).tolist()}")
    return mean


def default_profile(seeds):
    """Return the mean waiting time of pods with kube-scheduler's default profile, in seconds."""
    waits = []
    for seed in seeds:
        inputs = random_workload(seed)
        result = prepare_simulation(SimulationOptions(paths=(), seed=seed), inputs=inputs).run()
        waits.append(np.mean([pod.wait_ns / 1e9 for pod in result.pods if pod.wait_ns is not None]))
    return float(np.mean(waits))


def main(arguments=None):
    """Train, and compare on other workloads than those of the training."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120, help="Training time. [default: 120]")
    parser.add_argument("--episodes", type=int, default=len(TEST_SEEDS), help="Test workloads. [default: 10]")
    options = parser.parse_args(arguments)
    seeds, env = TEST_SEEDS[: options.episodes], SchedulingEnv(max_nodes=8)
    weights = train(env, options.seconds)
    random = np.random.default_rng(1)
    waits = {
        "random": mean_wait_s(env, lambda each: int(random.choice(np.flatnonzero(each["action_mask"]))), seeds),
        "default profile": default_profile(seeds),
        "trained agent": mean_wait_s(env, lambda each: choose(each, weights), seeds),
    }
    env.close()
    for name, wait in waits.items():
        print(f"{name:16} {wait:8.1f} s mean wait")
    return waits


if __name__ == "__main__":
    main()
