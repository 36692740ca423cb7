"""The commands capacity, nodes, what-if, compare and when: the verdict first, complete JSON, and exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from bayplan.analysis.result_directory import open_result
from bayplan.app.sources.result_source import objects_at
from bayplan.base.durations import MINUTE_NS
from bayplan.cli.main import main
from bayplan.objects.kinds import kind_of
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod, PodStatus
from tests.answers.clusters import node, running, waiting

OBJECTS = (
    node("n1", pool="x"),
    node("n2", zone="b", pool="x"),
    running("web-1", "n1").obj(),
    running("db-1", "n2", owner="db", cpu="2").obj(),
    waiting("big", cpu="6"),
)
MOST_ALLOCATED = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""

Run = Callable[..., tuple[int, str]]


def write_dump(path: Path, objects: tuple[KubernetesObject, ...]) -> str:
    """Write objects as kubectl get -o json does; return the name of the file."""
    items = []
    for item in objects:
        kind = kind_of(type(item))
        items.append(msgspec.to_builtins(item) | {"apiVersion": kind.api_version, "kind": kind.kind})
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(path)


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs the program with arguments, in which DUMP, LESS, GROWN and MOST stand for files."""
    names = {
        "DUMP": write_dump(tmp_path / "dump.json", OBJECTS),
        "LESS": write_dump(tmp_path / "less.json", OBJECTS[:-1]),
        "GROWN": write_dump(tmp_path / "grown.json", (*OBJECTS, node("n9"))),
    }
    (tmp_path / "most.yaml").write_text(MOST_ALLOCATED)
    names["MOST"] = str(tmp_path / "most.yaml")

    def call(*words: str) -> tuple[int, str]:
        code = main([names.get(word, word) for word in words])
        printed = capsys.readouterr()
        return code, printed.out if code != 2 else printed.err

    return call


@pytest.mark.parametrize(
    ("words", "code", "verdict"),
    [
        pytest.param(
            ["capacity", "web", "DUMP"],
            0,
            "5 more copies of replicaset/default/web fit; cpu runs out first (on 2 nodes).",
            id="capacity",
        ),
        pytest.param(
            ["capacity", "web=2,db", "DUMP"],
            0,
            "1 more mix of 2 replicaset/default/web + 1 replicaset/default/db (3 copies) fits, "
            "plus 1 copy of an incomplete mix; cpu runs out first (on 2 nodes).",
            id="capacity of a mix",
        ),
        pytest.param(
            ["capacity", "web", "DUMP", "--limit", "2"],
            0,
            "At least 2 more copies of replicaset/default/web fit; the search ended there (--limit).",
            id="capacity up to a limit",
        ),
        pytest.param(
            ["nodes", "remove", "DUMP"],
            0,
            "1 of 2 nodes can be removed: 1 pod moves, and no placed pod becomes pending. No larger set of nodes can be removed.",
            id="nodes to remove",
        ),
        pytest.param(
            ["nodes", "add", "DUMP", "--shape", "name=l,cpu=8,memory=16Gi,price=2"],
            0,
            "Add 1 node (1 x l/a) at a price of 2; no set of such nodes is cheaper than 0.25 (relaxation: only amounts count, "
            "pods and nodes may be split, and idle amounts of all nodes are used).",
            id="nodes to add",
        ),
        pytest.param(
            ["nodes", "add", "DUMP"],
            1,
            "1 pod stays pending: no node of these shapes helps.",
            id="no node helps",
        ),
        pytest.param(["what-if", "lose-zone=a", "DUMP"], 0, "lose-zone=a: of 3 pods, 1 moves.", id="what-if"),
        pytest.param(
            ["what-if", "resize=n1:cpu=500m", "scale=web:2", "cordon=n2", "DUMP"],
            0,
            "resize=n1:cpu=500m, scale=web:2, cordon=n2: of 4 pods, 1 is new and pending.",
            id="what-if of several changes",
        ),
        pytest.param(["compare", "DUMP", "LESS"], 1, "", id="compare"),
        pytest.param(["compare", "DUMP", "DUMP"], 0, "", id="compare the same"),
        pytest.param(["compare", "DUMP", "GROWN"], 1, "", id="compare with one more node"),
        pytest.param(["compare", "default", "MOST", "--on", "DUMP"], 1, "", id="compare configurations"),
        pytest.param(
            ["when", "big", "DUMP"],
            1,
            "pod/default/big does not start within 7 d; no pod with a known run time makes room for it.",
            id="when",
        ),
    ],
)
def test_the_verdict_is_the_first_line(run: Run, words: list[str], code: int, verdict: str) -> None:
    found = run(*words)
    assert found[0] == code
    assert found[1].startswith(f"{verdict}\n") or not verdict
    assert "\nAssumptions\n" in found[1]
    assert "kube-scheduler's defaults" in found[1] or "--on" in words


def test_compare_labels_columns_with_the_source_names_as_given(run: Run, tmp_path: Path) -> None:
    found = run("compare", "DUMP", "LESS")[1]
    assert f"{tmp_path / 'dump.json'}  {tmp_path / 'less.json'}\n" in found


@pytest.mark.parametrize(
    "words", [["compare", "DUMP", "DUMP"], ["compare", "default", "default", "--on", "DUMP"], ["when", "big", "DUMP"]]
)
def test_classic_mode_is_stated_in_the_assumptions(run: Run, words: list[str]) -> None:
    assert "  - the classic scheduler decides, with DefaultProvider\n" in run(*words, "--mode", "classic")[1]


def test_capacity_accepts_a_workload_that_does_not_exist_yet(run: Run, tmp_path: Path) -> None:
    pod = {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "2"}}}]}
    labels = {"app": "next"}
    spec = {
        "replicas": 3,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    document = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "next", "namespace": "default"},
        "spec": spec,
    }
    (tmp_path / "next.json").write_text(json.dumps(document))
    code, text = run("capacity", "next", "DUMP", "-f", str(tmp_path / "next.json"))
    assert (code, text.splitlines()[0]) == (
        0,
        "2 more copies of deployment/default/next fit; cpu runs out first (on 2 nodes).",
    )
    assert "copies of deployment/default/next are like its template" in text


@pytest.mark.parametrize(
    ("words", "names"),
    [
        pytest.param(["capacity", "web", "DUMP"], {"copies", "groups", "placements", "victims"}, id="capacity"),
        pytest.param(["nodes", "remove", "DUMP"], {"removed", "moves", "kept", "bound"}, id="nodes remove"),
        pytest.param(["nodes", "add", "DUMP"], {"nodes", "pods", "price", "bound"}, id="nodes add"),
        pytest.param(["what-if", "cordon=n1", "DUMP"], {"differences", "measures", "evictions"}, id="what-if"),
        pytest.param(["compare", "DUMP", "LESS"], {"differences", "measures", "counts"}, id="compare"),
        pytest.param(["when", "big", "DUMP"], {"starts", "median_ns", "horizon_ns"}, id="when"),
    ],
)
def test_json_output_has_rows_and_assumptions(run: Run, words: list[str], names: set[str]) -> None:
    found = json.loads(run(*words, "--json")[1])
    assert names <= found.keys()
    assert found["assumptions"]
    assert found["source"]["kind"] == "dump"
    assert found["source"]["assumptions"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        pytest.param(["capacity", "nobody", "DUMP"], "workload: expected", id="no such workload"),
        pytest.param(["nodes", "add", "DUMP", "--shape", "cpu=1"], "shape: expected cpu and memory", id="no shape"),
        pytest.param(
            ["nodes", "add", "DUMP", "--shape", "name=s,cpu=1,memory=1Gi", "--shape", "name=s,cpu=2,memory=1Gi"],
            "--shape: expected different names, got 2 shapes 's'",
            id="two shapes with one name",
        ),
        pytest.param(["nodes", "remove", "DUMP", "--node", "x*"], "nodes: expected", id="no such nodes"),
        pytest.param(
            ["nodes", "remove", "DUMP", "--shape", "cpu=8,memory=32Gi"],
            "--shape doesn't apply to remove",
            id="an option of add",
        ),
        pytest.param(
            ["nodes", "add", "DUMP", "--disable-eviction"],
            "--disable-eviction doesn't apply to add",
            id="an option of remove",
        ),
        pytest.param(
            ["nodes", "add", "DUMP", "--price", "m5=2"], "--price: expected an instance type", id="no such price"
        ),
        pytest.param(
            ["nodes", "remove", "DUMP", "--price", "n1=2", "--price", "n1=3"],
            "price: expected one price",
            id="two prices",
        ),
        pytest.param(
            ["nodes", "add", "DUMP", "--shape", "cpu=1,memory=1Gi,price=1,price=2"],
            "shape cpu=1,memory=1Gi,price=1,price=2: expected each key once, got price twice",
            id="two prices of a shape",
        ),
        pytest.param(
            ["nodes", "add", "DUMP", "--shape", "cpu=1,memory=1Gi,most=1.5"],
            "most: expected a whole number, got '1.5'; try most=2",
            id="a fraction of a node",
        ),
        pytest.param(
            ["what-if", "resize=n1:cpu=1,cpu=2", "DUMP"], "resize: expected each resource once", id="two amounts"
        ),
        pytest.param(["what-if", "DUMP"], "what-if: expected KIND=TARGET", id="no change"),
        pytest.param(["what-if", "losezone=b", "DUMP"], "got 'losezone=b'; try lose-zone=b", id="a misspelt change"),
        pytest.param(["what-if", "foo=b", "DUMP"], "got 'foo=b'; try lose-zone=ZONE", id="a change of no kind"),
        pytest.param(["what-if", "weight=Nobody:2", "DUMP"], "score plugin: expected one of", id="no such plugin"),
        pytest.param(["what-if", "drain=", "DUMP"], "change: expected drain=NODES, got 'drain='", id="no target"),
        pytest.param(
            ["what-if", "resize=n1:cpu=lots", "DUMP"], "resize cpu: expected a quantity, got 'lots'", id="no quantity"
        ),
        pytest.param(["capacity", "DUMP"], "WORKLOAD: expected WORKLOAD and a source, got only", id="no workload"),
        *(
            pytest.param([command, "DUMP"], "POD: expected POD and a source, got only", id=f"no pod for {command}")
            for command in ("explain", "unblock", "when")
        ),
        pytest.param(
            ["explain", "DUMP", "web"], "POD: expected POD, then a source, got the file", id="pod and source swapped"
        ),
        pytest.param(["explain", "elsewhere/web", "DUMP"], "try 'replicaset/default/web'", id="another namespace"),
        pytest.param(
            ["when", "web", "DUMP"], "expected a pending pod, or a workload with pending pods", id="nothing waits"
        ),
    ],
)
def test_invalid_questions_are_refused(run: Run, words: list[str], problem: str) -> None:
    code, text = run(*words)
    assert code == 2
    assert problem in text


def test_copies_of_several_options_are_added_up(run: Run) -> None:
    answers = [
        json.loads(run("nodes", "add", "DUMP", *copies, "--json")[1])["waiting"]
        for copies in (("--copies", "web=90", "--copies", "web=3"), ("--copies", "web=93"), ("--copies", "web=3"))
    ]
    assert answers[0] == answers[1] != answers[2]
    assert run("nodes", "add", "DUMP", "--copies", "") == run("nodes", "add", "DUMP")


def test_prices_apply_to_given_shapes(run: Run) -> None:
    _, output = run("nodes", "add", "DUMP", "--shape", "name=big,cpu=8,memory=32Gi", "--price", "big=3", "--json")
    assert json.loads(output)["price"] == 3


@pytest.mark.parametrize(
    ("shape", "want"),
    [
        pytest.param("like=n1,cpu=16", "like=n1,cpu=16", id="other amounts"),
        pytest.param("like=n1,cpu=16,name=big", "big", id="a name"),
        pytest.param("like=n1,price=3,zone=a", "like n1", id="only price and place"),
    ],
)
def test_shapes_like_a_node_are_named_by_their_differences(run: Run, shape: str, want: str) -> None:
    _, output = run("nodes", "add", "DUMP", "--copies", "web=20", "--shape", shape, "--json")
    assert {row["shape"].partition("/")[0] for row in json.loads(output)["nodes"]} == {want}


def test_shapes_without_a_price_are_named_if_others_have_one(run: Run) -> None:
    shapes = ("--shape", "name=big,cpu=8,memory=32Gi,price=3", "--shape", "name=small,cpu=4,memory=8Gi")
    for prices, want in (((), True), (("--price", "small=2"), False)):
        _, output = run("nodes", "add", "DUMP", *shapes, *prices, "--json")
        assert (
            "no price is given for 2 shapes, such as small/a: 1 is assumed" in json.loads(output)["assumptions"]
        ) is want


def test_waiting_ends_with_the_command_for_the_first_pod(run: Run) -> None:
    code, output = run("waiting", "DUMP")
    *_, empty, last = output.splitlines()
    *command, source = last.removeprefix("try: bayplan ").split()
    assert (code, empty, command, source[-9:]) == (1, "", ["unblock", "default/big"], "dump.json")
    assert run(*command, "DUMP")[1].startswith("default/big is pending")


def test_waiting_passes_its_options_on_to_the_command_for_the_first_pod(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "scheduler config.yaml"
    config.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    _, output = run("waiting", "DUMP", "--config", str(config))
    assert output.splitlines()[-1].endswith(f"--config '{config}'")
    _, output = run("waiting", "DUMP", "--mode", "classic")
    assert output.splitlines()[-1].endswith("--mode classic")


def test_a_finished_pod_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = running("done", "n1").obj()
    dump = write_dump(tmp_path / "d.json", (*OBJECTS, replace(done, status=PodStatus(phase="Succeeded"))))
    assert main(["explain", "done", dump]) == 0
    assert capsys.readouterr().out.startswith("default/done has succeeded on n1")


BROKEN = """from bayplan import PerNodePlugin

class Raises(PerNodePlugin):
    def filter_node(self, pod, node):
        raise ValueError("no data")

class Exits(PerNodePlugin):
    def filter_node(self, pod, node):
        raise SystemExit(3)

class Short(PerNodePlugin):
    def filter_node(self, pod):
        return None
"""


@pytest.mark.parametrize(
    ("words", "want"),
    [
        pytest.param(
            ["what-if", "plugin=PLUGINS:Raises", "DUMP"],
            ":5 the plugin failed in filter_node() (pod ",
            id="in a change",
        ),
        pytest.param(
            ["capacity", "web", "DUMP", "--plugin", "PLUGINS:Exits"],
            ":9 the plugin failed in filter_node(): SystemExit: 3",
            id="that ends the program",
        ),
        pytest.param(
            ["waiting", "DUMP", "--plugin", "PLUGINS:Short"],
            "plugin Short: expected filter_node(self, pod, node), got filter_node(self, pod)",
            id="with a missing parameter",
        ),
    ],
)
def test_a_broken_plugin_ends_the_command_with_a_message(run: Run, tmp_path: Path, words: list[str], want: str) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    code, text = run(*(word.replace("PLUGINS", str(tmp_path / "broken.py")) for word in words))
    assert code == 2
    assert want in text
    assert "Traceback" not in text


def test_waiting_counts_the_pods_of_filters_that_reject_fewer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "never.py").write_text(
        BROKEN + "\nclass Never(PerNodePlugin):\n    def filter_node(self, pod, node):\n        return 'no'\n"
    )
    items = (node("n1"), waiting("small"), waiting("big", cpu="6"))
    main(["waiting", write_dump(tmp_path / "two.json", items), "--plugin", f"{tmp_path}/never.py:Never"])
    assert "\n    Never, NodeResourcesFit (1 of them): default/" in capsys.readouterr().out


def test_the_assumptions_of_the_source_have_a_title_without_any_of_the_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["what-if", "cordon=n1", write_dump(tmp_path / "empty.json", (node("n1"),))]) == 0
    text = capsys.readouterr().out
    assert text.startswith("cordon=n1: no difference; the cluster has no pods.\n")
    assert "\n\nAssumptions\n  - " in text


GPUS = """
apiVersion: v1
kind: Node
metadata: {name: g1}
status: {allocatable: {cpu: "8", memory: 8Gi, pods: "110"}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s1}
spec:
  driver: d
  nodeName: g1
  pool: {name: g1, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one}
spec: {spec: {devices: {requests: [{name: g, exactly: {deviceClassName: gpu}}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: gpu}
spec:
  replicas: 2
  selector: {matchLabels: {app: g}}
  template:
    metadata: {labels: {app: g}}
    spec:
      resourceClaims: [{name: gpu, resourceClaimTemplateName: one}]
      containers: [{name: c, image: x, resources: {claims: [{name: gpu}]}}]
"""


def test_pods_of_a_result_have_their_generated_resource_claims(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gpus.yaml").write_text(GPUS)
    assert main(["simulate", str(tmp_path / "gpus.yaml"), "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    assert main(["waiting", str(tmp_path / "run")]) == 1
    taken = "1 pod: the devices that match all of its resource claims, on g1, are taken\n"
    assert taken in capsys.readouterr().out


def test_a_request_that_no_device_matches_differs_from_taken_devices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = "deviceClassName: gpu"
    impossible = f"{request}, selectors: [{{cel: {{expression: 'false'}}}}]"
    (tmp_path / "gpus.yaml").write_text(GPUS.replace(request, impossible))
    assert main(["waiting", str(tmp_path / "gpus.yaml")]) == 1
    no_match = "each of 2 pods: no node has devices that match all of its resource claims, not even taken ones\n"
    assert no_match in capsys.readouterr().out


def test_pods_of_a_result_have_their_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # The first pod runs for 1 h, of which some minutes have passed at the end of the simulation.
    pods = [
        replace(pod, spec=replace(pod.spec, restart_policy="Never", node_name=""))
        for pod in (
            running("first", "n1", kind="", cpu="3").obj(),
            running("second", "n1", kind="", cpu="3").obj(),
            running("brief", "n1", kind="", cpu="100m").annotation({"bayplan.io/run-time": "10m"}).obj(),
        )
    ]
    pods = [replace(pod, status=PodStatus(phase="Pending")) for pod in pods]
    source = write_dump(tmp_path / "two.json", (node("n1"), *pods))
    assert main(["simulate", source, "--until", "30m", "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    assert main(["when", "second", str(tmp_path / "run"), "--assume-run-time", "1h", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    passed_ns = summary["end_ns"] - summary["start_ns"]
    assert passed_ns > 0
    assert answer["median_ns"] == 3600 * 10**9 - passed_ns
    assert "a result does not contain the annotations of pods" in str(answer["source"]["assumptions"])


def test_a_pod_of_a_result_has_no_start_time_before_it_is_bound(tmp_path: Path) -> None:
    first = running("first", "", kind="", cpu="3").annotation({"bayplan.io/run-time": "10m"}).obj()
    first = replace(first, spec=replace(first.spec, restart_policy="Never"), status=PodStatus(phase="Pending"))
    source = write_dump(tmp_path / "two.json", (node("n1"), first, waiting("second", cpu="3")))
    assert main(["simulate", source, "--until", "30m", "--out", str(tmp_path / "run")]) == 0
    result = open_result(tmp_path / "run")
    start_ns = json.loads((tmp_path / "run" / "summary.json").read_text())["start_ns"]
    for minutes, bound in ((5, False), (20, True)):
        pods = {pod.key: pod for pod in objects_at(result, start_ns + minutes * MINUTE_NS) if isinstance(pod, Pod)}
        second = pods["default/second"]
        assert (bool(second.spec.node_name), second.status.start_time is not None) == (bound, bound)


def test_a_pod_that_failed_before_it_got_a_node_is_not_pending(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = replace(waiting("failed"), status=PodStatus(phase="Failed"))
    assert main(["unblock", "failed", write_dump(tmp_path / "d.json", (node("n1"), failed))]) == 2
    assert "expected a pending pod, got default/failed, which has failed" in capsys.readouterr().err
