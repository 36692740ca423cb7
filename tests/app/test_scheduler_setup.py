"""The setup of a scheduler."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.app.mode import Mode
from bayplan.app.scheduler_setup import SchedulerOptions, SchedulerSetup, read_setup
from bayplan.base.errors import ConfigurationError
from bayplan.framework.registry import Registry
from bayplan.live.plugin_guard import GuardedRegistry
from bayplan.live.plugin_runner import PluginRunner

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


@pytest.mark.parametrize(("mode", "wanted"), [(Mode.CURRENT, "a configuration file"), (Mode.CLASSIC, "a Policy file")])
def test_a_configuration_file_that_is_not_text_is_refused(mode: Mode, wanted: str, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match=f"expected {wanted} in UTF-8"):
        read_setup(SchedulerOptions(mode=mode, config=path))


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


def test_a_runner_guards_custom_plugins_of_the_setup_and_of_its_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    runners: list[object] = []
    of = GuardedRegistry.of

    def noting(registry: Registry, runner: PluginRunner) -> GuardedRegistry:
        runners.append(runner)
        return of(registry, runner)

    monkeypatch.setattr(GuardedRegistry, "of", noting)
    first, second = PluginRunner(1.0, now_ns=lambda: 0), PluginRunner(1.0, now_ns=lambda: 0)
    try:
        setup = read_setup(SchedulerOptions(), runner=first)
        setup.make()
        trial = setup.for_trial(read_setup(SchedulerOptions(text=PROFILE)).configuration, second)
        assert list(trial.make().profiles) == ["batch"]
        assert setup.with_text(PROFILE).runner is first
    finally:
        first.close()
        second.close()
    assert runners == [first, second]


def test_only_a_trial_that_calls_extenders_has_connections() -> None:
    text = PROFILE + "extenders: [{urlPrefix: 'http://127.0.0.1:1', filterVerb: filter}]\n"
    setup = read_setup(SchedulerOptions(text=text))
    runner = PluginRunner(1.0, now_ns=lambda: 0)
    try:
        assert setup.for_trial(setup.configuration, runner).connections.extenders == ()
        with setup.for_trial(setup.configuration, runner, calls_extenders=True).connections as connections:
            assert len(connections.extenders) == 1
            assert connections is not setup.connections
    finally:
        runner.close()
        setup.connections.close()
