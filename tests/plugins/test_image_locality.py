"""ImageLocality: thresholds, spread of images, and one size for each name."""

import pytest

from bayplan.engine.rule_result import ScoreResult
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.plugins.image_locality import ImageLocality
from tests.plugins.builders import make_node, make_plugin, make_pod, make_state
from tests.plugins.forms import scores

MIB = 1 << 20


def holding(name: str, size: int, image: str = "a:latest") -> Node:
    return make_node(name, images=[((image,), size)])


def score(pod: Pod, *nodes: Node) -> list[int]:
    state = make_state(nodes)
    plugin = make_plugin(ImageLocality, state)
    spec = plugin.compile(pod, state)
    assert scores(plugin, pod, state, None) == scores(plugin, pod, state, plugin.observe(spec, state))
    return list(scores(plugin, pod, state, None).values())


@pytest.mark.parametrize(
    ("size", "want"),
    [
        pytest.param(0, 0, id="nothing"),
        pytest.param(23 * MIB, 0, id="the lower threshold"),
        pytest.param(33 * MIB, 1, id="10 of 977 MiB above it"),
        pytest.param(999 * MIB, 99, id="just below the upper one"),
        pytest.param(1000 * MIB, 100, id="the upper threshold"),
        pytest.param(5000 * MIB, 100, id="above it"),
        pytest.param(2**63 - 1, 0, id="a size that leaves int64 as a float becomes negative"),
    ],
)
def test_the_score_rises_between_the_size_thresholds(size: int, want: int) -> None:
    assert score(make_pod(image="a"), holding("n1", size)) == [want]


def test_an_image_is_scaled_by_the_share_of_nodes_that_have_it() -> None:
    assert score(make_pod(image="a"), holding("n1", 1000 * MIB), make_node("n2")) == [48, 0]
    assert score(make_pod(image="a"), holding("n1", 1000 * MIB), holding("n2", 1000 * MIB)) == [100, 100]


def test_the_first_node_determines_the_size_of_an_image() -> None:
    assert score(make_pod(image="a"), holding("n1", 400 * MIB), holding("n2", 900 * MIB)) == [38, 38]
    assert score(make_pod(image="a"), holding("n2", 900 * MIB), holding("n1", 400 * MIB)) == [89, 89]


@pytest.mark.parametrize(
    ("image", "held", "want"),
    [
        pytest.param("a", "a:latest", 100, id="no tag is latest"),
        pytest.param("reg:5000/a", "reg:5000/a:latest", 100, id="a port is not a tag"),
        pytest.param("reg:5000/a:v1", "reg:5000/a:v1", 100, id="a tag"),
        pytest.param("a@sha256:1", "a@sha256:1", 100, id="a digest"),
        pytest.param("a", "docker.io/library/a:latest", 0, id="registries are not guessed"),
    ],
)
def test_image_names_are_normalized_before_matching(image: str, held: str, want: int) -> None:
    assert score(make_pod(image=image), holding("n1", 2000 * MIB, held)) == [want]


def test_each_container_raises_the_upper_threshold_and_counts_its_image() -> None:
    container, other = {"name": "c", "image": "a"}, {"name": "d", "image": "b"}
    node = holding("n1", 500 * MIB)
    assert score(make_pod(containers=[container]), node) == [48]
    assert score(make_pod(containers=[container, other]), node) == [24]
    assert score(make_pod(containers=[container, container]), node) == [49]
    assert score(make_pod(containers=[other], initContainers=[container]), node) == [24]


def test_image_volumes_count_without_raising_the_threshold() -> None:
    volume = {"name": "v", "image": {"reference": "a"}}
    assert score(make_pod(volumes=[volume]), holding("n1", 500 * MIB)) == [48]


def test_pods_with_the_same_images_share_results() -> None:
    state = make_state([])
    plugin = make_plugin(ImageLocality, state)
    one, other = (
        make_pod(containers=[{"name": "c", "image": first}, {"name": "d", "image": second}])
        for first, second in (("a", "b:latest"), ("b", "a:latest"))
    )
    assert plugin.compile(one, state).key == plugin.compile(other, state).key


def test_scores_follow_added_and_changed_nodes() -> None:
    state = make_state([holding("n1", 1000 * MIB)])
    plugin = make_plugin(ImageLocality, state)
    spec = plugin.compile(make_pod(image="a"), state)
    result = ScoreResult(plugin, spec, state)

    def score_of_n1() -> int:
        result.refresh(plugin.observe(spec, state), None)
        return int(result.values[state.nodes.row_of["n1"]])

    alone = score_of_n1()
    state.add_node(make_node("n2"))
    beside_another = score_of_n1()
    state.add_node(holding("n2", 1000 * MIB))
    assert alone > beside_another
    assert score_of_n1() == alone
