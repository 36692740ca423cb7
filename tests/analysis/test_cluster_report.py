"""The report on a running cluster."""

from __future__ import annotations

import pytest
from rich.console import Console

from bayplan.analysis.cluster_report import cluster_facts, render_cluster_report
from bayplan.engine.scheduler import Scheduler
from bayplan.testing import make_node, make_pod
from bayplan.testing.builders import NodeBuilder
from tests.live.hosts import Cluster


def report_of(cluster: Cluster) -> str:
    status = cluster.host.status()
    decisions = {"scheduled": status.scheduled, "unschedulable": status.unschedulable, "errors": status.errors}

    def facts(scheduler: Scheduler) -> str:
        console = Console(width=120)
        with console.capture() as printed:
            console.print(*render_cluster_report(cluster_facts(scheduler, decisions)), sep="\n")
        return printed.get()

    return cluster.host.call(facts)


def test_the_report_contains_pending_pods_reasons_and_utilisation() -> None:
    cluster = Cluster()
    cluster.add(make_node("n1").zone("a").capacity(cpu="4", memory="8Gi", pods="10").obj())
    cluster.add(make_node("n2").zone("b").capacity(cpu="4", memory="8Gi", pods="10").obj())
    cluster.add(*(make_pod(f"p{number}").req(cpu="1500m", memory="1Gi").obj() for number in range(6)))
    cluster.add(make_pod("held").gate("quota").obj())
    cluster.run()
    text = report_of(cluster)
    assert (
        "2 of 7 pods are pending; all for the same reason: none of 2 nodes has room: Insufficient cpu (2); "
        "1 more is held back by gates." in " ".join(text.split())
    )
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "nodes 2 in 2 zones" in lines
    assert "gated 1" in lines
    assert "decisions 6: 4 scheduled, 2 unschedulable" in lines
    assert "default/p4 and default/p5" in lines
    assert "cpu 6 8 75 % 1" in lines
    assert "pods 4 20 20 % 8" in lines


@pytest.mark.parametrize(
    "shut",
    [
        pytest.param(make_node("n2").unschedulable(), id="cordoned"),
        pytest.param(make_node("n2").taint("node.kubernetes.io/not-ready").condition("Ready", "False"), id="not ready"),
    ],
)
def test_capacity_of_cordoned_and_unready_nodes_is_not_reported_as_room(shut: NodeBuilder) -> None:
    cluster = Cluster()
    cluster.add(make_node("n1").capacity(cpu="2", memory="8Gi", pods="10").condition("Ready", "True").obj())
    cluster.add(shut.capacity(cpu="16", memory="8Gi", pods="10").obj())
    cluster.add(*(make_pod(name).req(cpu="2").obj() for name in ("runs", "waits")))
    cluster.run()
    text = report_of(cluster)
    assert (
        "1 of 2 pods is pending: the only node that it may use, n1, has no room: Insufficient cpu (1); the other node"
        in text
    )
    assert "cpu 2 18 11 % 0" in [" ".join(line.split()) for line in text.splitlines()]


def test_an_empty_cluster_is_reported_as_empty() -> None:
    cluster = Cluster()
    cluster.run()
    text = report_of(cluster)
    assert "The cluster is empty" in text
    assert "Utilisation" not in text
