"""The setup of a scheduler."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.app.classic_setup import NO_PLUGINS, ClassicSetup, library_setup
from bayplan.app.mode import Mode
from bayplan.app.question_clusters import changed_setup
from bayplan.app.scheduler_setup import SchedulerOptions, SchedulerSetup, read_setup
from bayplan.base.errors import ConfigurationError, PluginFailure
from bayplan.classic.configuration import ClassicConfiguration
from bayplan.classic.extender import ClassicExtender
from bayplan.classic.gates import ClassicGates
from bayplan.classic.scheduler_configuration import ClassicSchedulerConfiguration
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.extender import Extender
from bayplan.live.plugin_runner import PluginRunner
from bayplan.testing import make_node, make_pod

PROFILE = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: batch}]
"""
POLICY = "{apiVersion: v1, kind: Policy, predicates: [{name: HostName}], priorities: []}"
PLUGIN = """from bayplan import PerNodePlugin
class Mine(PerNodePlugin):
    name = "Mine"
    def score_node(self, pod, node):
        return SCORE
"""


def names(setup: SchedulerSetup) -> list[str]:
    return [profile.scheduler_name for profile in setup.configuration.profiles]


def scores(setup: SchedulerSetup) -> list[str]:
    return [item.name for item in setup.configuration.profiles[0].plugins["score"]]


def filters(setup: SchedulerSetup) -> list[str]:
    return [item.name for item in setup.configuration.profiles[0].plugins["filter"]]


@pytest.mark.parametrize("mode", list(Mode))
def test_an_empty_configuration_file_is_refused(mode: Mode, tmp_path: Path) -> None:
    path = tmp_path / "empty.yaml"
    path.touch()
    match = "Object 'Kind' is missing" if mode is Mode.CURRENT else "couldn't get version/kind"
    with pytest.raises(ConfigurationError, match=match) as caught:
        read_setup(SchedulerOptions(mode=mode, config=path))
    assert caught.value.where == str(path)


@pytest.mark.parametrize(
    ("mode", "content", "want"),
    [
        pytest.param(Mode.CURRENT, b"\xff\xfe\x00", "yaml: incomplete UTF-16 character", id="UTF-16"),
        pytest.param(Mode.CURRENT, b"a: \xe9\n", "yaml: incomplete UTF-8 octet sequence", id="UTF-8"),
        pytest.param(
            Mode.CLASSIC, b"\xff\xfe\x00", "invalid policy: yaml: incomplete UTF-16", id="UTF-16 in classic mode"
        ),
        pytest.param(Mode.CLASSIC, b"a: \xe9\n", "invalid policy: yaml: incomplete UTF-8", id="UTF-8 in classic mode"),
    ],
)
def test_a_file_that_cannot_be_decoded_has_the_error_of_upstream(
    mode: Mode, content: bytes, want: str, tmp_path: Path
) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=want):
        read_setup(SchedulerOptions(mode=mode, config=path))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize(("mode", "text"), [(Mode.CURRENT, PROFILE), (Mode.CLASSIC, POLICY)])
def test_a_byte_order_mark_determines_the_encoding(mode: Mode, text: str, encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(text.encode(encoding))
    setup = read_setup(SchedulerOptions(mode=mode, config=path))
    assert setup.configuration_text == text
    assert setup.configuration == read_setup(SchedulerOptions(mode=mode, text=text)).with_text(text).configuration


def test_the_text_of_the_file_replaces_its_path(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(PROFILE)
    setup = read_setup(SchedulerOptions(config=path, seed=3))
    assert (setup.configuration_text, setup.options.where, setup.options.config) == (PROFILE, str(path), None)
    path.write_text("changed later")
    assert names(setup.with_plugins_read_again()) == names(setup) == ["batch"]
    assert setup.seed == 3


def test_an_empty_text_means_the_default_configuration() -> None:
    setup = read_setup(SchedulerOptions(text=PROFILE))
    again = setup.with_text(" \n")
    assert names(setup) == ["batch"]
    assert names(again) == ["default-scheduler"]
    assert again.configuration == again.default_configuration()


def test_an_empty_text_means_the_algorithm_provider_in_classic_mode() -> None:
    options = SchedulerOptions(mode=Mode.CLASSIC, algorithm_provider="ClusterAutoscalerProvider")
    setup = read_setup(options)
    other = setup.with_text(POLICY)
    assert "GeneralPredicates" in filters(setup)
    assert "GeneralPredicates" not in filters(other)
    assert other.with_text("").configuration == setup.configuration != setup.default_configuration()


def test_custom_plugins_stay_when_the_configuration_changes_and_are_reloaded_on_request(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(PLUGIN.replace("SCORE", "1"))
    setup = read_setup(SchedulerOptions(plugins=[f"{path}:Mine=2"]))
    other = setup.with_text(PROFILE)
    assert ("Mine", 2) in [(item.name, item.weight) for item in other.configuration.profiles[0].plugins["score"]]
    assert other.plugin_files == {"Mine": str(path)}
    before = other.registry.plugins["Mine"]
    path.write_text(PLUGIN.replace("SCORE", "2"))
    assert other.with_text("").registry.plugins["Mine"] is before
    again = other.with_plugins_read_again()
    assert again.registry.plugins["Mine"] is not before
    assert names(again) == ["batch"]


def place(scheduler: Scheduler, *, nodes: int = 1) -> str:
    """Return the node that a scheduler chooses for a pod among equal nodes."""
    for number in range(nodes):
        scheduler.handle(None, make_node(f"n{number}").obj(), 0)
    scheduler.handle(None, make_pod("p").obj(), 0)
    report = scheduler.schedule_one(0)
    assert report is not None
    return report.node_name


def test_a_runner_guards_custom_plugins_of_the_setup_and_of_its_trials(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(PLUGIN.replace("return SCORE", "raise ValueError('broken')"))
    first, second = PluginRunner(now_ns=lambda: 0), PluginRunner(now_ns=lambda: 0)
    try:
        setup = read_setup(SchedulerOptions(plugins=[f"{path}:Mine"]), runner=first)
        with pytest.raises(PluginFailure, match="broken"):
            place(setup.make(), nodes=2)
        assert (first.failures, second.failures) == ({"Mine": 1}, {})
        with pytest.raises(PluginFailure, match="broken"):
            place(setup.for_trial(setup.configuration, second).make(), nodes=2)
        assert (first.failures, second.failures) == ({"Mine": 1}, {"Mine": 1})
        assert setup.with_text(PROFILE).runner is first
    finally:
        first.close()
        second.close()


def test_the_seed_of_the_options_breaks_ties_unless_another_is_given() -> None:
    setups = [read_setup(SchedulerOptions(seed=seed)) for seed in range(8)]
    chosen = [place(setup.make(), nodes=8) for setup in setups]
    assert len(set(chosen)) > 1
    assert [place(setups[0].make(seed=seed), nodes=8) for seed in range(8)] == chosen


@pytest.mark.parametrize("change", ["config=CONFIG", "plugin=PLUGIN config=CONFIG", "config=CONFIG plugin=PLUGIN"])
def test_a_configuration_of_a_question_can_name_bundled_plugins_and_those_of_the_question(
    change: str, tmp_path: Path
) -> None:
    plugin, config = tmp_path / "mine.py", tmp_path / "config.yaml"
    plugin.write_text(PLUGIN.replace("SCORE", "1"))
    names = ["BestFit", *(["Mine"] if "PLUGIN" in change else [])]
    enabled = ", ".join(f"{{name: {name}}}" for name in names)
    config.write_text(PROFILE.replace("batch", f"batch, plugins: {{multiPoint: {{enabled: [{enabled}]}}}}"))
    changes = change.replace("CONFIG", str(config)).replace("PLUGIN", f"{plugin}:Mine").split()
    setup = changed_setup(read_setup(), changes)
    assert {name for name in names if name in scores(setup)} == set(names)
    assert setup.with_text(config.read_text()).configuration == setup.configuration


def test_a_policy_of_a_question_keeps_the_gates_and_other_settings_of_a_classic_cluster(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY.replace("HostName", "EvenPodsSpread"))
    given = ClassicConfiguration(gates=ClassicGates.from_text("EvenPodsSpread=true"), disable_preemption=True)
    setup = changed_setup(library_setup(given, NO_PLUGINS), [f"config={path}", "feature-gates=PodOverhead=true"])
    assert isinstance(setup, ClassicSetup)
    assert (setup.gates.even_pods_spread, setup.gates.pod_overhead) == (True, True)
    assert isinstance(setup.configuration, ClassicSchedulerConfiguration)
    assert setup.configuration.classic.disable_preemption
    assert "EvenPodsSpread" in filters(setup)
    assert setup.options.feature_gates == "PodOverhead=true"


def test_a_text_replaces_the_policy_of_a_classic_cluster() -> None:
    setup = library_setup(ClassicConfiguration(), NO_PLUGINS)
    other = setup.with_text(POLICY)
    assert "GeneralPredicates" not in filters(other)
    assert other.configuration_text == POLICY
    assert other.with_text("").configuration == setup.configuration


@pytest.mark.parametrize(
    ("mode", "text", "kind"),
    [
        pytest.param(Mode.CURRENT, PROFILE + "extenders: [EXTENDER]\n", Extender, id="current"),
        pytest.param(Mode.CLASSIC, POLICY.replace("}]", "}], extenders: [EXTENDER]", 1), ClassicExtender, id="classic"),
    ],
)
def test_only_a_trial_that_calls_extenders_has_connections(mode: Mode, text: str, kind: type[Extender]) -> None:
    text = text.replace("EXTENDER", "{urlPrefix: 'http://127.0.0.1:1', filterVerb: filter}")
    setup = read_setup(SchedulerOptions(mode=mode, text=text))
    runner = PluginRunner(1.0, now_ns=lambda: 0)
    try:
        assert setup.for_trial(setup.configuration, runner).connections.extenders == ()
        with setup.for_trial(setup.configuration, runner, calls_extenders=True).connections as connections:
            assert [type(each) for each in connections.extenders] == [kind]
            assert connections is not setup.connections
    finally:
        runner.close()
        setup.connections.close()
