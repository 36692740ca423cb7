"""Plugins from files: loaded, enabled everywhere, and refused with helpful messages."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from bayplan import Cluster, NodeInfo, PerNodePlugin
from bayplan.app import custom_plugins
from bayplan.app.custom_plugins import CustomPlugin, load_custom_plugins, reported_plugin_errors
from bayplan.app.simulation import SimulationOptions, simulate
from bayplan.base.errors import InputError, PluginError
from bayplan.objects.pod import Pod
from bayplan.plugins.registry import in_tree_registry
from bayplan.testing import PluginFault, check_plugin

NODES = """
apiVersion: v1
kind: Node
metadata: {name: a, labels: {rack: "1"}}
status: {allocatable: {cpu: "8", memory: 16Gi, pods: "10"}}
---
apiVersion: v1
kind: Node
metadata: {name: b, labels: {rack: "2"}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: c, image: app, resources: {requests: {cpu: "1"}}}]}
"""

ODD = """
from bayplan import PerNodePlugin

class NoHandle(PerNodePlugin):
    def __init__(self): ...
    def score_node(self, pod, node): return 1

class Texts(PerNodePlugin):
    reads = "nodes"
    def score_node(self, pod, node): return 1

class Defaults(PerNodePlugin):
    def __init__(self, arguments, handle=None, limit=3):
        super().__init__(arguments, handle)
    def score_node(self, pod, node): return 1
"""
PLUGIN_OF_ONE_NODE = """
from bayplan import PerNodePlugin

class {name}(PerNodePlugin):
    def score_node(self, pod, node): return 1
"""
READS_NUMBERS = """
from bayplan import PerNodePlugin

class Numbers(PerNodePlugin):
    reads = property(lambda self: 5)
    def score_node(self, pod, node): return 1
"""
PLUGIN = '''
from bayplan import NodeInfo, PerNodePlugin


class HighRack(PerNodePlugin):
    """Wants the rack with the highest number."""

    def score_node(self, pod, node):
        return 3 * int(node.node.metadata.labels["rack"])


class LowRack(PerNodePlugin):
    """Refuses all racks but the first."""

    name = "Low"

    def filter_node(self, pod, node):
        return None if node.node.metadata.labels["rack"] == "1" else "node(s) were in a high rack"


class Fails(PerNodePlugin):
    """Divides by zero."""

    def score_node(self, pod, node):
        return 1 // 0


class FailsEarly(Fails):
    """Can't be made."""

    def __init__(self, arguments, handle):
        raise RuntimeError("no")


class FailsOnNode(PerNodePlugin):
    """Lacks a label."""

    def filter_node(self, pod, node):
        return None if node.node.metadata.labels["rack"] == "1" else node.node.metadata.labels["room"]


class FailsOnPod(HighRack):
    """Can't compile a pod."""

    def compile(self, pod, cluster):
        raise RuntimeError("no")


class Numbered(HighRack):
    name = 5


class Nothing:
    """Is no plugin."""
'''

QUEUE_PLUGINS = """
from bayplan import PerNodePlugin
from bayplan.framework.events import ActionType, ClusterEvent, EventResource
from bayplan.framework.plugin import PreEnqueuePlugin


class FailsInGate(PreEnqueuePlugin):
    def pre_enqueue(self, pod):
        return {}["gate"]


class FailsInHint(PerNodePlugin):
    def filter_node(self, pod, node):
        return "not p" if pod.metadata.name == "p" else None

    def events_to_register(self):
        return [(ClusterEvent(EventResource.ASSIGNED_POD, ActionType.ADD), lambda pod, old, new: {}["hint"])]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cluster.yaml").write_text(NODES)
    (tmp_path / "racks.py").write_text(PLUGIN)
    (tmp_path / "queue_plugins.py").write_text(QUEUE_PLUGINS)
    (tmp_path / "broken.py").write_text("import bayplan\n\ndef f(:\n")
    (tmp_path / "raises.py").write_text("x = {}\ny = x['z']\n")
    (tmp_path / "ends.py").write_text("import sys\n\nsys.exit(3)\n")
    return tmp_path


def placed(folder: Path, *plugins: str, config: str = "") -> str:
    path = None
    if config:
        path = folder / "config.yaml"
        path.write_text(f"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n{config}")
    options = [f"{folder}/{plugin}" if ".py" in plugin else plugin for plugin in plugins]
    result = simulate(SimulationOptions(paths=[str(folder / "cluster.yaml")], plugins=options, config=path))
    return result.pods[0].node


@pytest.mark.parametrize(
    ("plugins", "want"),
    [
        pytest.param((), "a", id="without plugins the larger node wins"),
        pytest.param(("racks.py:HighRack=9",), "b", id="a heavy score outweighs the others"),
        pytest.param(("racks.py:HighRack",), "a", id="with weight 1 it does not"),
        pytest.param(("racks.py:HighRack=9", "racks.py:LowRack"), "a", id="a filter decides before scores do"),
    ],
)
def test_a_plugin_changes_the_placement(folder: Path, plugins: tuple[str, ...], want: str) -> None:
    assert placed(folder, *plugins) == want


def test_a_configuration_can_enable_a_custom_plugin_and_set_its_weight(folder: Path) -> None:
    config = """profiles:
- plugins:
    score: {enabled: [{name: HighRack, weight: 9}]}
"""
    assert placed(folder, "racks.py:HighRack", config=config) == "b"


def test_a_plugin_runs_in_every_profile(folder: Path) -> None:
    registry, enabled = load_custom_plugins([f"{folder}/racks.py:LowRack=3"], in_tree_registry())
    assert [(custom.plugin.name, custom.weight) for custom in enabled] == [("Low", 3)]
    assert registry.extension_points_for_configuration("Low") == ("filter",)
    config = "profiles:\n- schedulerName: default-scheduler\n- schedulerName: second\n"
    assert placed(folder, "racks.py:LowRack", config=config) == "a"


@pytest.mark.parametrize(
    ("plugin", "want"),
    [
        pytest.param(
            "rack.py:High",
            "expected an existing Python file, got '{folder}/rack.py'; try '{folder}/racks.py'",
            id="a missing file",
        ),
        pytest.param(
            "racks.py:HighRak",
            "{folder}/racks.py HighRak: expected a class that inherits from one of Bayplan's plugin classes, "
            "got no class of this name; "
            "try '{folder}/racks.py:HighRack'",
            id="a missing class",
        ),
        pytest.param(
            "racks.py:Numbered",
            "{folder}/racks.py Numbered: expected a text as its `name`, got 5",
            id="a name that is not a text",
        ),
        pytest.param(
            "racks.py:Nothing",
            "{folder}/racks.py Nothing: expected a class that inherits from one of Bayplan's plugin classes, "
            "got class Nothing, which does not inherit from one",
            id="a class that is not a plugin",
        ),
        pytest.param(
            "racks.py",
            "expected FILE.py:CLASS, or the name of an installed plugin, got an unknown name; "
            "try '{folder}/racks.py:ClassName'",
            id="no class",
        ),
        pytest.param(
            "racks.py:HighRack=0",
            "expected a whole number from 1 to 2147483647, got weight '0'; try '{folder}/racks.py:HighRack=2'",
            id="weight 0",
        ),
        pytest.param(
            "racks.py:HighRack=heavy",
            "expected a whole number from 1 to 2147483647, got weight 'heavy'",
            id="a weight in words",
        ),
        pytest.param(
            "broken.py:X",
            "{folder}/broken.py:3 the file can't be imported: SyntaxError",
            id="a file that is not Python",
        ),
        pytest.param(
            "ends.py:X",
            "{folder}/ends.py:3 the file can't be imported: SystemExit: 3",
            id="a file that calls exit does not end the server",
        ),
        pytest.param(
            "raises.py:X",
            "{folder}/raises.py:2 the file can't be imported: KeyError: 'z'",
            id="a file that fails",
        ),
        pytest.param(
            "racks.py:Fails",
            "{folder}/racks.py:25 the plugin failed in score_node() (pod default/p, node a): ZeroDivisionError",
            id="a plugin that fails in a cycle",
        ),
        pytest.param(
            "racks.py:FailsOnNode",
            "{folder}/racks.py:39 the plugin failed in filter_node() (pod default/p, node b): KeyError: 'room'",
            id="a plugin that fails on one node",
        ),
        pytest.param(
            "racks.py:FailsOnPod",
            "{folder}/racks.py:46 the plugin failed in compile() (pod default/p): RuntimeError: no",
            id="a plugin that fails before it reads a node",
        ),
        pytest.param(
            "racks.py:FailsEarly",
            "{folder}/racks.py:32 the plugin failed in __init__(): RuntimeError: no",
            id="a plugin whose constructor fails",
        ),
        pytest.param(
            "queue_plugins.py:FailsInGate",
            "{folder}/queue_plugins.py:9 the plugin failed in pre_enqueue() (plugin FailsInGate, pod default/p): KeyError: 'gate'",
            id="a plugin that fails in PreEnqueue",
        ),
        pytest.param(
            "NodePort",
            "expected FILE.py:CLASS, or the name of an installed plugin, got an unknown name; try 'NodePorts'",
            id="a misspelt name",
        ),
    ],
)
def test_an_invalid_plugin_option_is_refused_with_a_suggestion(folder: Path, plugin: str, want: str) -> None:
    with pytest.raises(PluginError) as refused:
        placed(folder, plugin)
    assert want.format(folder=folder) in str(refused.value)


def test_the_error_of_a_queueing_hint_names_the_waiting_pod_not_that_of_the_cycle(folder: Path) -> None:
    cluster = folder / "cluster.yaml"
    cluster.write_text(NODES + "---\n" + NODES.rpartition("---\n")[2].replace("name: p", "name: q"))
    with pytest.raises(PluginError) as failed:
        placed(folder, "queue_plugins.py:FailsInHint")
    want = "queue_plugins.py:17 the plugin failed in <lambda>() (plugin FailsInHint, pod default/p): KeyError: 'hint'"
    assert want in str(failed.value)


def test_files_of_one_name_are_separate_modules(tmp_path: Path) -> None:
    paths = [tmp_path / name / "plug.py" for name in "ab"]
    for path, name in zip(paths, ("First", "Second"), strict=True):
        path.parent.mkdir()
        path.write_text(PLUGIN_OF_ONE_NODE.format(name=name))
    options = [f"{path}:{name}" for path, name in zip(paths, ("First", "Second"), strict=True)]
    registry, _ = load_custom_plugins(options, in_tree_registry())
    for name in ("First", "Second"):
        plugin = registry.plugins[name]
        assert getattr(sys.modules[plugin.__module__], name) is plugin


def test_the_module_of_a_plugin_survives_a_failed_reload(tmp_path: Path) -> None:
    path = tmp_path / "plug.py"
    path.write_text(PLUGIN_OF_ONE_NODE.format(name="Only"))
    registry, _ = load_custom_plugins([f"{path}:Only"], in_tree_registry())
    path.write_text("1 / 0")
    with pytest.raises(PluginError):
        load_custom_plugins([f"{path}:Only"], in_tree_registry())
    assert sys.modules[registry.plugins["Only"].__module__].Only is registry.plugins["Only"]


def test_a_repeated_plugin_is_refused(folder: Path) -> None:
    with pytest.raises(PluginError, match="is given more than once"):
        placed(folder, "racks.py:HighRack", "racks.py:HighRack=2")


def test_an_installed_plugin_is_found_by_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "rack_package.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(folder))
    points = [EntryPoint("racks", "rack_package:LowRack", custom_plugins.ENTRY_POINT_GROUP)]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points)
    assert placed(folder, "Low") == "a"
    _, enabled = load_custom_plugins([], in_tree_registry())
    assert enabled == []


def test_an_installed_plugin_with_another_constructor_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "odd_package.py").write_text(ODD)
    monkeypatch.syspath_prepend(str(folder))
    points = [EntryPoint("odd", "odd_package:NoHandle", custom_plugins.ENTRY_POINT_GROUP)]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points)
    with pytest.raises(PluginError, match=r"^plugin NoHandle: expected __init__\(self, arguments, handle\)"):
        load_custom_plugins([], in_tree_registry())


@pytest.mark.parametrize("value", ["rack_gone:LowRack", "os:getcwd"])
def test_an_invalid_entry_point_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    points = [EntryPoint("racks", value, custom_plugins.ENTRY_POINT_GROUP)]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points)
    with pytest.raises(PluginError, match=f"entry point racks = {value}"):
        load_custom_plugins([], in_tree_registry())
    assert placed(folder), "where neither options nor a configuration may name it, nobody looks for it"


def test_a_missing_configuration_file_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="expected a configuration file, got no such file or directory"):
        simulate(SimulationOptions(paths=[str(folder / "cluster.yaml")], config=folder / "none.yaml"))


def test_a_configuration_with_an_unknown_plugin_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match=r"config.yaml:5:31 .*NoSuchPlugin"):
        placed(folder, config="profiles:\n- plugins:\n    filter: {enabled: [{name: NoSuchPlugin}]}\n")


def test_a_constructor_with_other_parameters_and_reads_of_another_type_are_refused(folder: Path) -> None:
    (folder / "odd.py").write_text(ODD)
    for name, want in (
        ("NoHandle", r"^plugin NoHandle: expected __init__\(self, arguments, handle\), got __init__\(self\)$"),
        ("Texts", r"^plugin Texts: expected reads of the type bayplan.Reads, got 'nodes'; try Reads.NODES$"),
    ):
        with pytest.raises(PluginError, match=want):
            placed(folder, f"odd.py:{name}")
    assert placed(folder, "odd.py:Defaults")


def test_such_classes_are_also_refused_by_the_library_and_by_the_check() -> None:
    class NoHandle(PerNodePlugin):
        def __init__(self, limit: int) -> None:
            """Take a limit only."""

        def score_node(self, pod: Pod, node: NodeInfo) -> int:
            return 1

    with pytest.raises(PluginError, match=r"got __init__\(self, limit: .int.\)"):
        Cluster([], plugins=[NoHandle])
    with pytest.raises(PluginFault, match=r"got __init__\(self, limit: .int.\)"):
        check_plugin(NoHandle)


def test_an_error_outside_of_plugins_suggests_to_check_them(folder: Path) -> None:
    (folder / "odd.py").write_text(READS_NUMBERS)
    with pytest.raises(AttributeError) as failed:
        placed(folder, "odd.py:Numbers")
    assert failed.value.__notes__[-1].startswith("Perhaps Numbers returned a value of the wrong type: bayplan.testing")


@pytest.mark.parametrize(
    ("problem", "has_note"),
    [
        pytest.param(TypeError("no number"), True, id="a wrong type"),
        pytest.param(OSError("disk full"), False, id="a full disk"),
        pytest.param(MemoryError(), False, id="no memory"),
    ],
)
def test_only_errors_that_wrong_types_cause_suggest_a_check(problem: Exception, has_note: bool) -> None:
    enabled = CustomPlugin(PerNodePlugin, 1, "mine.py")
    with pytest.raises(type(problem)) as failed, reported_plugin_errors([enabled]):
        raise problem
    assert bool(getattr(failed.value, "__notes__", ())) == has_note


def test_a_method_that_is_never_called_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plug.py"
    path.write_text(
        "from bayplan import PerNodePlugin\n\nclass Mine(PerNodePlugin):\n    def filter_node(self, pod, node):\n"
        "        return None\n\n    def permit(self, *arguments):\n        return None\n"
    )
    want = r"plugin Mine: expected the base class PermitPlugin, without which the scheduler never calls permit\(\)"
    with pytest.raises(PluginError, match=want):
        load_custom_plugins([f"{path}:Mine"], in_tree_registry())
    methods = {"filter_node": lambda self, pod, node: None, "permit": lambda self, state, pod, node_name: None}
    mine = type("Mine", (PerNodePlugin,), methods)
    with pytest.raises(PluginFault, match=want):
        check_plugin(mine)


def test_the_suggested_base_classes_of_a_plugin_can_be_combined(tmp_path: Path) -> None:
    path = tmp_path / "plug.py"
    path.write_text(
        "from bayplan.framework.plugin import Plugin\n\nclass Mine(Plugin):\n    def permit(self, *arguments):\n"
        "        return None\n"
    )
    with pytest.raises(PluginError) as refused:
        load_custom_plugins([f"{path}:Mine"], in_tree_registry())
    assert refused.value.hint == "class Mine(PermitPlugin): ..."
