"""Mistakes in arguments of the library are refused with a suggestion; arguments with several forms are converted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayplan import (
    Cluster,
    InputError,
    PerNodePlugin,
    SimulationOptions,
    make_node,
    make_pod,
    open_source,
    simulate,
)
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.plugin import Handle


class Accepts(PerNodePlugin):
    def filter_node(self, pod: Any, node: Any) -> None:
        return None


class FiltersBefore(PerNodePlugin):
    def filter_node(self, pod: Any, node: Any) -> None:
        return None

    def pre_filter(self, spec: Any, cluster: Any, state: Any) -> None:
        return None


class FiltersAlone:
    def filter_node(self, pod: Any, node: Any) -> None:
        return None


def handle_of(cluster: Cluster) -> Handle:
    return Handle(cluster.state, FeatureGates.from_mapping({}))


def two_nodes() -> Cluster:
    nodes = [
        make_node(name).capacity(cpu="4").label({"cloud.google.com/gke-nodepool": pool}).obj()
        for name, pool in (("gke-a-x9z8", "a"), ("gke-b-k2m4", "b"))
    ]
    cluster = Cluster(nodes)
    cluster.schedule(make_pod("web").req(cpu="1").obj())
    return cluster


class Prefers(PerNodePlugin):
    def score_node(self, pod: Any, node: Any) -> int:
        return 100


@pytest.mark.parametrize(
    ("plugins", "want"),
    [
        pytest.param([Prefers], 1, id="a class has weight 1"),
        pytest.param({Prefers: 5}, 5, id="a dict has weights"),
    ],
)
def test_custom_plugins_have_weights(plugins: Any, want: int) -> None:
    cluster = Cluster([make_node(name).capacity(cpu="4").obj() for name in "ab"], plugins=plugins)
    (decision,) = cluster.schedule(make_pod("p").obj())
    assert dict(zip(decision.scorers, decision.weights, strict=True))["Prefers"] == want


@pytest.mark.parametrize(
    ("call", "want"),
    [
        pytest.param(
            lambda it: it.explain(it.pods[0]), r"got PodRow\(.*; try 'default/web'", id="a row instead of a name"
        ),
        pytest.param(
            lambda it: it.unblock(3), "expected the name of a pod or workload, got 3", id="a number instead of a name"
        ),
        pytest.param(
            lambda it: it.capacity("web", seeds=3), r"expected a list of seeds, got 3; try range\(3\)", id="seeds"
        ),
        pytest.param(
            lambda it: it.capacity(make_pod("p").obj()),
            "a workload or pod of the cluster.*try 'depl",
            id="a pod object",
        ),
        pytest.param(lambda it: it.unblock("big", shapes=["cpu=4"]), "shapes: expected nodes, got 'cpu=4'", id="shape"),
        pytest.param(
            lambda it: it.unblock("big", shapes="cpu=4"), "shapes: expected a list of nodes, got 'cpu=4'", id="one text"
        ),
        pytest.param(
            lambda it: it.unblock("big", shapes=make_node("n").obj()),
            r"shapes: expected a list of nodes, got .*try \[make_node",
            id="one node",
        ),
        pytest.param(
            lambda it: Cluster(classic="DefaultProvider"),  # type: ignore[arg-type]
            r"classic: expected a ClassicConfiguration, got 'DefaultProvider'; "
            r"try ClassicConfiguration\(provider='DefaultProvider'\) of bayplan.classic.configuration",
            id="the name of a classic provider",
        ),
        pytest.param(
            lambda it: Cluster({"kind": "Pod"}),  # type: ignore[dict-item]
            r"Cluster\(objects\): expected a list of objects, got one dict; try \[manifest\]",
            id="one manifest",
        ),
        pytest.param(
            lambda it: Cluster({"kind": "List", "items": []}),  # type: ignore[dict-item]
            r"got one dict; try its items: Cluster\(manifest\['items'\]\)",
            id="a list of kubectl",
        ),
        pytest.param(
            lambda it: Cluster(feature_gates="GangScheduling=true"),  # type: ignore[arg-type]
            "feature_gates: expected a dict of names and bools, got 'GangScheduling=true'",
            id="feature gates as text",
        ),
        pytest.param(
            lambda it: Cluster(feature_gates={"GangScheduling": "false"}),  # type: ignore[dict-item]
            "feature_gates GangScheduling: expected True or False, got 'false'",
            id="a feature gate as text",
        ),
        pytest.param(
            lambda it: simulate(SimulationOptions(paths="dump.yaml")),
            r"SimulationOptions\(paths\): expected a list of paths, got str 'dump.yaml'; try paths=\['dump.yaml'\]",
            id="one path",
        ),
        pytest.param(
            lambda it: simulate(SimulationOptions(paths=Path("dump.yaml"))),  # type: ignore[arg-type]
            r"got PosixPath .*; try paths=\['dump.yaml'\]",
            id="one path object",
        ),
        pytest.param(
            lambda it: Cluster(plugins=["Mine"]),  # type: ignore[list-item]
            r"got 'Mine'; try the class itself: \[Mine\]",
            id="the name of a plugin",
        ),
        pytest.param(
            lambda it: Cluster(plugins=[Accepts(None, handle_of(it))]),  # type: ignore[list-item]
            r"expected classes of plugins, got .*; try the class itself: \[Accepts\]",
            id="an instance of a plugin",
        ),
        pytest.param(
            lambda it: Cluster(plugins=[(Accepts, 5)]),  # type: ignore[list-item]
            r"expected classes of plugins, got .*; try a dict: \{Accepts: 5\}",
            id="a pair of a plugin and its weight",
        ),
        pytest.param(
            lambda it: Cluster(plugins={Accepts: 0.5}),  # type: ignore[dict-item]
            "plugins: weight of Accepts: expected a whole number from 1 to 2147483647, got 0.5",
            id="a fraction as weight",
        ),
        pytest.param(
            lambda it: Cluster(plugins=[FiltersAlone]),  # type: ignore[list-item]
            r"FiltersAlone'>; try class FiltersAlone\(PerNodePlugin\)",
            id="a class without a base class of plugins",
        ),
        pytest.param(
            lambda it: Cluster.open(["dump.yaml"]),  # type: ignore[arg-type]
            r"Cluster.open: expected paths, got list \['dump.yaml'\]",
            id="a list of paths",
        ),
        pytest.param(
            lambda it: Cluster.open("dump.yaml", plugins="my.py:Mine"),
            r"expected a list of strings, got str 'my.py:Mine'; try plugins=\['my.py:Mine'\]",
            id="one plugin",
        ),
        pytest.param(
            lambda it: SimulationOptions(paths=["a"], mode="old"),  # type: ignore[arg-type]
            r"SimulationOptions\(mode\): expected Mode.CURRENT or Mode.CLASSIC, got str 'old'",
            id="mode",
        ),
        pytest.param(
            lambda it: SimulationOptions(paths=["a"], until_ns="1m"),  # type: ignore[arg-type]
            r"SimulationOptions\(until_ns\): expected an integer or None, got str '1m'",
            id="a text as number",
        ),
        pytest.param(
            lambda it: Cluster(record_level="ful"),  # type: ignore[arg-type]
            "record_level: expected RecordLevel.OFF or RecordLevel.SUMMARY or RecordLevel.FULL, got str 'ful'",
            id="record level",
        ),
        pytest.param(
            lambda it: Cluster(seed="1"),  # type: ignore[arg-type]
            "seed: expected an integer, got str '1'",
            id="seed",
        ),
        pytest.param(
            lambda it: it.capacity("web", limit="5"), "limit: expected an integer, got str '5'", id="limit of capacity"
        ),
        pytest.param(
            lambda it: it.remove(it.nodes[0]), r"remove\(\): expected strings, got NodeRow", id="a row to remove"
        ),
        pytest.param(lambda it: it.node_of(it.pods[0]), "got PodRow.*; try 'default/web'", id="a row as pod"),
        pytest.param(lambda it: it.what_if(), "expected KIND=TARGET with one of", id="no change"),
        pytest.param(
            lambda it: it.what_if("cordon=*", reschedule="web"),
            r"expected 'new', 'all' or a list of workloads, got 'web'; try \['web'\]",
            id="a workload to reschedule",
        ),
        pytest.param(
            lambda it: it.removable_nodes(prices={"c": 1.0}), "^prices: expected an instance type, pool", id="pool"
        ),
        pytest.param(
            lambda it: it.removable_nodes(prices={"a": -1}), "price of a: expected a number of at least 0", id="price"
        ),
        pytest.param(
            lambda it: Cluster(plugins=Accepts),  # type: ignore[arg-type]
            r"expected a list of classes, got .*; try \[Accepts\]",
            id="a class",
        ),
        pytest.param(
            lambda it: Cluster(plugins=[FiltersBefore]),
            r"expected the base class PreFilterPlugin, without which the scheduler never calls pre_filter\(\), "
            r"got a subclass of PerNodePlugin; try class FiltersBefore\(PerNodePlugin, PreFilterPlugin\): \.\.\.",
            id="a method of an extension point without its base class",
        ),
        pytest.param(
            lambda it: Cluster(plugins=["my.py:Mine"]),  # type: ignore[list-item]
            r"expected classes of plugins, got 'my.py:Mine'; try Cluster.open\(..., plugins=\['my.py:Mine'\]\)",
            id="a plugin as text",
        ),
        pytest.param(
            lambda it: Cluster(configuration="scheduler.yaml"),
            r"expected a configuration, as text or dict.*; try Path\('scheduler.yaml'\).read_text\(\)",
            id="the path of a configuration",
        ),
        pytest.param(
            lambda it: Cluster(configuration=Path("scheduler.conf")),  # type: ignore[arg-type]
            r"expected a configuration, as text or dict.*; try Path\('scheduler.conf'\).read_text\(\)",
            id="a path object as configuration",
        ),
        pytest.param(lambda it: it.what_if(5), "change: expected a text, got 5; try 'cordon=NODE'", id="a number"),
        pytest.param(
            lambda it: it.what_if(configuration=[None]), "change: expected a text, got None", id="None as a change"
        ),
        pytest.param(
            lambda it: it.what_if(configuration="disable=ImageLocality"),
            r"configuration: expected a list, got .*; try \['disable=ImageLocality'\]",
            id="a text instead of a list of changes",
        ),
        pytest.param(
            lambda it: it.what_if(configuration=["scale=web:4"]),
            r"configuration: expected changes of the scheduler: config=.*, got 'scale=web:4'; try what_if\('scale=web:4'",
            id="a change of the cluster as configuration",
        ),
        pytest.param(
            lambda it: it.what_if("cordon=gke-a-x9z8", reschedule=None),
            "reschedule: expected a list of strings, got NoneType",
            id="None instead of workloads",
        ),
        pytest.param(
            lambda it: it.capacity("web", seeds="12"), "expected a list of seeds, got '12'", id="seeds as text"
        ),
        pytest.param(lambda it: it.capacity("web", seeds=[1.5]), "seeds: expected an integer, got float 1.5", id="1.5"),
        pytest.param(lambda it: it.explain("web", best="3"), "best: expected an integer, got str '3'", id="best"),
        pytest.param(
            lambda it: it.removable_nodes(prices=[0.2]), r"prices: expected a dict .*, got \[0.2\]", id="prices"
        ),
        pytest.param(
            lambda it: it.add({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "web-"}}),
            "Cluster.add Pod \\$.metadata.name: expected a name, got generateName 'web-'.*; try web-1",
            id="a generated name",
        ),
        pytest.param(
            lambda it: it.schedule(make_pod("").obj()), "Pod \\$.metadata.name: expected a name, got none", id="no name"
        ),
        pytest.param(
            lambda it: it.add(
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": "p"},
                    "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "-1"}}}]},
                }
            ),
            r"Cluster.add Pod p \$.spec.containers\[0\].resources.requests.cpu: expected an amount of at least 0, got '-1'",
            id="a negative request",
        ),
        pytest.param(
            lambda it: open_source("dump.yaml"),  # type: ignore[arg-type]
            r"expected SourceOptions, got str 'dump.yaml'; try SourceOptions\(paths=\['dump.yaml'\]\)",
            id="a path instead of options",
        ),
        pytest.param(
            lambda it: it.add(
                {"apiVersion": "v1", "kind": "Node", "spec": {"taints": [{"key": "a", "effect": "NoSched"}]}}
            ),
            r"taints\[0\].effect: expected .*, got 'NoSched'; try 'NoSchedule'",
            id="a value that kube-apiserver refuses",
        ),
    ],
)
def test_a_mistake_is_refused_with_a_suggestion(call: Callable[[Any], object], want: str) -> None:
    with pytest.raises(InputError, match=want):
        call(two_nodes())


@pytest.mark.parametrize("these", [{"web"}, {"web": 1}.keys(), ("web" for _ in range(1)), ["web"]])
def test_the_workloads_to_reschedule_are_any_iterable(these: Iterable[str]) -> None:
    assert two_nodes().what_if("cordon=*", reschedule=these).counts["waits"] == 1


def test_changes_of_the_scheduler_and_files_are_changes_like_others(tmp_path: Path) -> None:
    cluster = two_nodes()
    cluster.add(make_pod("big").req(cpu="9").obj())
    assert cluster.what_if("disable=NodeResourcesFit").counts["placed"] == 1
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "big"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    (tmp_path / "small.json").write_text(json.dumps(pod))
    assert cluster.what_if(f"apply={tmp_path / 'small.json'}").counts["placed"] == 1


def test_prices_may_name_pools() -> None:
    cluster = two_nodes()
    priced = cluster.removable_nodes(prices={"a": 3.0, "gke-b-k2m4": 0.5}, force=True)
    assert {row.node: row.price for row in priced.removed}.items() <= {"gke-a-x9z8": 3.0, "gke-b-k2m4": 0.5}.items()
    assert priced.price in (0.5, 3.0)


def test_prices_may_be_numbers_of_numpy() -> None:
    numbers: Any = {"a": np.int64(3), "gke-b-k2m4": np.float32(0.5)}
    priced = two_nodes().removable_nodes(prices=numbers, force=True)
    assert [type(row.price) for row in priced.removed] == [float]
    assert priced.price in (0.5, 3.0)


def test_paths_may_be_strings_or_path_objects(tmp_path: Path) -> None:
    dump, config = tmp_path / "pods.yaml", tmp_path / "scheduler.yaml"
    dump.write_text("{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: c, image: i}]}}")
    config.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    for paths, configuration in (((dump,), config), ((str(dump),), str(config))):
        assert Cluster.open(*paths, config=configuration).pending == ["default/web"]
        assert Cluster.load(*paths).pending == ["default/web"]
        options = SimulationOptions(paths=paths, config=configuration)  # type: ignore[arg-type]
        assert [each.key for each in simulate(options).pods] == ["default/web"]


def test_levels_and_seeds_may_have_other_types() -> None:
    nodes = [make_node("n").capacity(cpu="4").obj()]
    cluster = Cluster(nodes, record_level="full", seed=np.int64(3))  # type: ignore[arg-type]
    (decision,) = cluster.schedule(make_pod("web").obj())
    assert decision.record.node == "n"
    assert cluster.seed == 3


def test_arrays_are_no_seeds() -> None:
    with pytest.raises(InputError, match="seed"):
        Cluster(seed=np.array([1, 2]))  # type: ignore[arg-type]


def test_a_trace_is_not_loaded_as_a_cluster(tmp_path: Path) -> None:
    table = tmp_path / "nodes.csv"
    table.write_text("sn,cpu_milli,memory_mib,gpu,model\ngke-a-x9z8,4000,8192,0,\n")
    want = (
        r"Cluster.load: expected manifests, got a trace; try simulate\(SimulationOptions\(paths=\['.*nodes.csv'\]\)\)"
    )
    with pytest.raises(InputError, match=want):
        Cluster.load(table)
