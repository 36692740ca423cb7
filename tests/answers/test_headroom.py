"""Headroom over time: at each time, exactly the pods that existed at that time use resources."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.answers.answer_text import headroom_text
from bayplan.answers.capacity import parse_mix
from bayplan.answers.headroom import headroom
from bayplan.cli.main import main
from bayplan.examples import example_path
from tests.answers.clusters import cluster_of, node, running


def test_headroom_follows_the_pods_of_each_time() -> None:
    pods = [running(f"web-{number}", "a", cpu="1").obj() for number in range(3)]
    answer = headroom(lambda time_ns: cluster_of(node("a"), *pods[:time_ns]), [0, 1, 3], parse_mix("web"))
    assert [(row.taken_at_ns, row.copies, row.placed) for row in answer.times] == [(0, 4, 0), (1, 3, 1), (3, 1, 3)]
    assert (answer.least, answer.most, answer.times[2].runs_out) == (1, 4, "cpu")


def test_constant_headroom_is_one_number() -> None:
    web = running("web-1", "a", cpu="1").obj()
    answer = headroom(lambda _: cluster_of(node("a"), web), [0, 1], parse_mix("web"))
    want = "3 more copies of replicaset/default/web fit at each time; the limit is cpu."
    assert headroom_text(answer, 0)[0] == want


@pytest.mark.parametrize(
    ("limit", "want"),
    [
        pytest.param(2, "At least 2 more copies of replicaset/default/web fit at each time.", id="at each time"),
        pytest.param(4, "Between 3 and at least 4 more copies of replicaset/default/web fit over time", id="at a time"),
    ],
)
def test_headroom_beyond_the_limit_of_the_search_is_a_minimum(limit: int, want: str) -> None:
    web = running("web-1", "a", cpu="1").obj()
    clusters = [cluster_of(node("a", cpu="8"), web), cluster_of(node("a"), web)]
    answer = headroom(lambda time_ns: clusters[time_ns], [0, 1], parse_mix("web"), limit=limit)
    assert headroom_text(answer, 0)[0].startswith(want)


def test_headroom_of_a_result_directory_is_computed_at_evenly_spaced_times(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = str(tmp_path / "result")
    assert main(["simulate", str(example_path()), "--out", result]) == 0
    capsys.readouterr()
    assert main(["capacity", "deployment/shop/web", result, "--over-time", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        "Between 8 and 68 more copies of deployment/shop/web fit over time; the fewest at 0 s, because of cpu."
    )
    assert [line.split()[-4:] for line in lines[3:6]] == [
        ["8", "59", "12", "cpu"],
        ["68", "33", "3", "cpu"],
        ["68", "33", "3", "cpu"],
    ]


def test_over_time_requires_a_result_directory(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capacity", "deployment/shop/web", str(example_path()), "--over-time", "3"]) == 2
    assert "expected a result directory" in capsys.readouterr().err


NODE = """
apiVersion: v1
kind: Node
metadata: {{name: {name}, labels: {{node: {name}}}}}
status: {{allocatable: {{cpu: "4", memory: 8Gi, pods: "20"}}}}
---
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}, namespace: default}}
spec:
  suspend: true
  template:
    spec: {{restartPolicy: Never, {extra}, containers: [{{name: c, image: i, resources: {{requests: {{cpu: "{cpu}"}}}}}}]}}
---
"""


def test_over_time_uses_the_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # The pinned pod fits only if the free one is placed on the other node.
    text = NODE.format(name="a") + NODE.format(name="b") + JOB.format(name="free", cpu=1, extra="hostname: x")
    text += JOB.format(name="pinned", cpu=4, extra="nodeSelector: {node: a}")
    (tmp_path / "cluster.yaml").write_text(text)
    result = str(tmp_path / "result")
    assert main(["simulate", str(tmp_path / "cluster.yaml"), "--out", result]) == 0
    found = set[str]()
    for seed in range(6):
        capsys.readouterr()
        assert main(["capacity", "free,pinned", result, "--over-time", "2", "--seed", str(seed)]) == 0
        found.add(capsys.readouterr().out.splitlines()[0].partition(" of ")[0])
    assert found == {"1 more copy", "3 more copies"}


def test_over_time_refuses_several_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capacity", "deployment/shop/web", str(example_path()), "--over-time", "3", "--seeds", "2"]) == 2
    assert "--over-time can't be combined with --seeds; try --seed N" in capsys.readouterr().err


def test_over_time_refuses_a_workload_from_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    example = str(example_path())
    asked = ["capacity", "deployment/shop/web", example, "--file", example, "--over-time", "3"]
    assert main(asked) == 2
    assert "--over-time can't be combined with --file" in capsys.readouterr().err
