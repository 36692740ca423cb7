"""The expander ``price``: upstream's test cases with upstream's prices, and the parts of the rule."""

from __future__ import annotations

import math

import pytest

from bayplan.autoscaling.configuration import NodeGroup, Options
from bayplan.autoscaling.expander import (
    Option,
    best_option,
    preferred_cpu_milli,
    price_score,
    requests_price,
    suppressed_unfitness,
)
from bayplan.objects.meta import ObjectMeta
from bayplan.objects.node import Node, NodeStatus

# As in upstream's cases, a core costs 20; pod p1 requests one core, p2 half a core.
PRICES = Options(expander="price", cpu_price=20.0, memory_price=0.0)
BOTH, ONE = {"cpu": 1500}, {"cpu": 1000}


def option(name: str, cpu: str, *, price: float, nodes: int, requested: dict[str, int], more: str = "") -> Option:
    amounts: dict[str, str | int | float] = {"cpu": cpu, **({more: 1} if more else {})}
    template = Node(metadata=ObjectMeta(name=name), status=NodeStatus(capacity=amounts, allocatable=amounts))
    group = NodeGroup(
        name=name, min_size=0, max_size=99, price=price, priority=0, start_up_delay_ns=0, template=template
    )
    return Option(group=group, nodes=nodes, pods=["p"], offered={}, requested=requested)


# Price of a node and number of nodes for n1 (1 core) and n2 (4 cores), each with the requests of its pods; the number
# of present nodes; the chosen group.
CASES = [
    ("the first group is cheaper", (20.0, 2, BOTH), (200.0, 1, BOTH), 6, "n1"),
    ("the first is cheaper, but the second is preferred", (50.0, 2, BOTH), (200.0, 1, BOTH), 20, "n2"),
    ("with many new nodes the preferred size does not count", (20.0, 80, BOTH), (200.0, 40, BOTH), 20, "n1"),
    ("the second group is cheaper", (200.0, 2, BOTH), (100.0, 1, BOTH), 6, "n2"),
    ("both cost the same, but the second takes more", (200.0, 2, ONE), (200.0, 1, BOTH), 6, "n2"),
]


@pytest.mark.parametrize(("small", "large", "present", "want"), [pytest.param(*each[1:], id=each[0]) for each in CASES])
def test_upstream_test_cases_select_the_same_group(
    small: tuple[float, int, dict[str, int]], large: tuple[float, int, dict[str, int]], present: int, want: str
) -> None:
    options = [
        option(name, cpu, price=price, nodes=nodes, requested=requested)
        for name, cpu, (price, nodes, requested) in (("n1", "1", small), ("n2", "4", large))
    ]
    assert best_option(options, PRICES, lambda: 0.0, cluster_nodes=present).group.name == want


@pytest.mark.parametrize(
    ("nodes", "want"),
    [(1, 1), (2, 1), (3, 2), (6, 2), (7, 4), (20, 4), (21, 8), (60, 8), (61, 16), (200, 16), (201, 32), (9999, 32)],
)
def test_the_preferred_node_size_grows_with_the_cluster(nodes: int, want: int) -> None:
    assert preferred_cpu_milli(nodes) == 1000 * want


def test_requests_price_sums_cpu_memory_and_gpu_prices() -> None:
    requested = {"cpu": 2000, "memory": 4 * 2**30, "nvidia.com/gpu": 1, "pods": 7}
    assert requests_price(requested, Options()) == pytest.approx(2 * 0.033174 + 4 * 0.004446 + 0.7)


def test_nodes_with_gpus_are_the_last_choice_for_pods_without_gpus() -> None:
    plain = option("plain", "1", price=9.0, nodes=1, requested=BOTH)
    gpus = option("gpus", "1", price=1.0, nodes=1, requested=BOTH, more="nvidia.com/gpu")
    assert suppressed_unfitness(gpus, 1) == 1000
    assert best_option([plain, gpus], PRICES, lambda: 0.0, cluster_nodes=1) is plain


def test_the_price_score_is_unfitness_times_the_price_ratio() -> None:
    # 8 cores instead of the preferred 1, two nodes: 7 * (1 - tanh(1/15)) + 1; stabilization is half a core: 10.
    found = price_score(option("n", "8", price=30.0, nodes=2, requested=BOTH), PRICES, 1)
    assert found == pytest.approx((7 * (1 - math.tanh(1 / 15)) + 1) * (60 + 10) / (30 + 10))


def test_pods_without_requests_have_a_zero_price_and_a_finite_score() -> None:
    cheap, dear = (option(name, "1", price=price, nodes=1, requested={}) for name, price in (("a", 1.0), ("b", 2.0)))
    assert best_option([dear, cheap], PRICES, lambda: 0.0, cluster_nodes=1) is cheap
    assert price_score(cheap, PRICES, 1) == pytest.approx(11 / 10)
