"""The counts of topology spread constraints in words."""

from __future__ import annotations

from bayplan.analysis.spread_domains import spread_domains
from bayplan.objects.kinds import decode
from bayplan.objects.pod import Pod
from bayplan.testing import make_node


def test_a_spread_constraint_without_eligible_nodes_is_described() -> None:
    constraints = [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "x"}},
        }
        for key in ("rack", "row")
    ]
    metadata = {"name": "p", "namespace": "default", "labels": {"app": "x"}}
    pod = decode(
        {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": {"topologySpreadConstraints": constraints}}
    )
    assert isinstance(pod, Pod)
    nodes = [make_node("a").label(rack="r1").obj(), make_node("b").label(row="1").obj()]
    texts = [domains.text() for domains in spread_domains(pod, nodes, [])]
    assert texts == [f"no {key} has a node that counts for it (maxSkew 1)" for key in ("rack", "row")]
