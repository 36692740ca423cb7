"""Suggestions for misspelt names."""

import pytest

from bayplan.base.near_names import near_name

CLOUD = ["ip-10-0-11-188.eu-west-1.compute.internal", "ip-10-0-12-7.eu-west-1.compute.internal"]


@pytest.mark.parametrize(
    ("name", "candidates", "want"),
    [
        pytest.param("nodeSelecter", ["nodeName", "nodeSelector"], "nodeSelector", id="a replaced letter"),
        pytest.param("Nod", ["Pod", "Node"], "Node", id="a missing letter is nearer than a replaced one"),
        pytest.param("clusetr.yaml", ["cluster.yaml"], "cluster.yaml", id="two letters in the wrong order"),
        pytest.param("NODES", ["nodes"], "nodes", id="case does not count"),
        pytest.param("wev", ["api", "web"], "web", id="one replaced letter in a name of three"),
        pytest.param("topologySpread", ["topologySpreadConstraints"], "topologySpreadConstraints", id="a beginning"),
        pytest.param("ip-10-0-11-188", CLOUD, CLOUD[0], id="a host name without its domain"),
        pytest.param("zzz.yaml", ["q.yaml"], "", id="nothing but the suffix is the same"),
        pytest.param("default/zzz", ["default/web"], "", id="nothing but the namespace is the same"),
        pytest.param("deployment/web", ["default/web"], "", id="nothing but the end is the same"),
        pytest.param("ip-10-3-99-1.eu-west-1.compute.internal", CLOUD, "", id="another machine of the same domain"),
        pytest.param("up", ["ip"], "", id="a replaced letter in a name of two"),
        pytest.param("x", ["xylophone"], "", id="a single letter begins too many names"),
        pytest.param("", ["a"], "", id="no name"),
        pytest.param("web", [], "", id="no candidates"),
    ],
)
def test_near_name_returns_the_closest_candidate_or_nothing(name: str, candidates: list[str], want: str) -> None:
    assert near_name(name, candidates) == want
