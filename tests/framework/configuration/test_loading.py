"""Loading as the rest of the program does it: errors with their places, parsed data, and writing it back."""

import datetime
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from bayplan.base.errors import ConfigurationError
from bayplan.base.go_text.json import json_text
from bayplan.formats.json_tree import JsonValue
from bayplan.framework.configuration.loading import declared_document, default_configuration, load_configuration
from bayplan.framework.feature_gates import FeatureGates
from tests.framework.configuration.configurations import HEADER
from tests.shared import recording, shared_path

EXAMPLE = (
    HEADER
    + """
parallelism: 8
clientConnection: {qps: 0.1, kubeconfig: k}
profiles:
- schedulerName: a
  percentageOfNodesToScore: 30
  plugins:
    score: {enabled: [{name: ImageLocality, weight: 4}], disabled: [{name: NodeAffinity}]}
    multiPoint: {disabled: [{name: VolumeBinding}]}
  pluginConfig:
  - name: Other
    args: {b: 1, a: {x: [1.5, null]}}
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints:
      - {maxSkew: 2, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, minDomains: 3, matchLabelKeys: [k]}
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [x]}]}]
        preferredDuringSchedulingIgnoredDuringExecution:
        - {weight: 5, preference: {matchFields: [{key: metadata.name, operator: In, values: [n1]}]}}
extenders:
- urlPrefix: http://x
  filterVerb: f
  tlsConfig: {insecure: true, certData: YWJj}
  managedResources: [{name: example.com/a, ignoredByScheduler: true}]
"""
)


def test_configuration_errors_contain_file_line_column_and_path() -> None:
    with pytest.raises(ConfigurationError) as refused:
        load_configuration(HEADER + "parallelism: 0\npodInitialBackoffSeconds: 0\n", where="scheduler.yaml")
    assert str(refused.value) == (
        "scheduler.yaml has 2 problems:\n"
        "  scheduler.yaml:3:14 $.parallelism: Invalid value: 0: should be an integer value greater than zero\n"
        "  scheduler.yaml:4:27 $.podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"
    )
    assert refused.value.where == "scheduler.yaml"


def test_default_configuration_equals_a_configuration_with_only_a_header() -> None:
    config = default_configuration()
    assert config == load_configuration(HEADER)
    assert (config.declared.parallelism, config.percentage_of_nodes_to_score) == (16, 0)
    assert (config.declared.pod_initial_backoff_seconds, config.declared.pod_max_backoff_seconds) == (1, 10)
    assert (config.declared.leader_election.resource_lock, config.declared.client_connection.burst) == ("leases", 100)
    assert (config.declared.delay_cache_until_active, config.extenders) == (False, ())
    assert [profile.scheduler_name for profile in config.profiles] == ["default-scheduler"]


def test_gates_change_the_default_configuration() -> None:
    gates = FeatureGates.from_mapping({"GenericWorkload": True, "GangScheduling": True})
    assert default_configuration(gates).profiles[0].names("permit") == ("GangScheduling",)


def test_parsed_data_loads_like_its_text() -> None:
    parsed, read = load_configuration(yaml.safe_load(EXAMPLE)), load_configuration(EXAMPLE)
    assert (parsed.profiles, parsed.extenders) == (read.profiles, read.extenders)
    assert parsed.effective_document() == read.effective_document()


def test_parsed_data_without_a_kind_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"Object 'Kind' is missing in '\{\}'"):
        load_configuration({})


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(datetime.date(2026, 1, 1), id="a date"),
        pytest.param({"a"}, id="a set"),
        pytest.param({("a",): 1}, id="a tuple as key"),
        pytest.param(float("nan"), id="not a number"),
    ],
)
def test_parsed_data_that_json_cannot_represent_is_refused(value: object) -> None:
    with pytest.raises(ConfigurationError, match=r"expected dicts with string keys|json parse error"):
        load_configuration({"parallelism": value})


@pytest.mark.parametrize("digits", [30, 5000])
def test_numbers_of_any_length_are_refused_as_a_field_of_32_bits(digits: int) -> None:
    with pytest.raises(ConfigurationError, match="parallelism"):
        load_configuration(f"{HEADER}parallelism: {'9' * digits}\n", where="f")


@pytest.mark.parametrize("text", [HEADER, EXAMPLE], ids=["header", "example"])
def test_written_configurations_load_to_the_same_configuration(text: str) -> None:
    config = load_configuration(text)
    for document in (declared_document(config.declared), config.effective_document()):
        for again in (json.dumps(document), yaml.safe_dump(document)):
            loaded = load_configuration(again)
            assert loaded.profiles == config.profiles
            assert loaded.extenders == config.extenders
            assert loaded.effective_document() == config.effective_document()


def test_the_effective_configuration_contains_only_what_is_used() -> None:
    document = load_configuration(EXAMPLE).effective_document()
    assert document["parallelism"] == 8
    assert document["clientConnection"] == {
        "kubeconfig": "k",
        "acceptContentTypes": "",
        "contentType": "application/vnd.kubernetes.protobuf",
        "qps": 0.1,
        "burst": 100,
    }
    entries = first(document["profiles"])["pluginConfig"]
    assert isinstance(entries, list)
    names = [entry["name"] for entry in entries if isinstance(entry, dict)]
    assert names == sorted(names, key=str)
    assert "Other" not in names
    assert "VolumeBinding" not in names
    assert first(document["extenders"])["httpTimeout"] == "5s"
    assert first(first(document["extenders"])["managedResources"]) == {
        "name": "example.com/a",
        "ignoredByScheduler": True,
    }


def first(value: JsonValue) -> dict[str, JsonValue]:
    assert isinstance(value, list)
    assert isinstance(value[0], dict)
    return value[0]


def test_the_default_configuration_matches_configz_of_a_running_scheduler() -> None:
    """Compare with /configz of a kube-scheduler without a configuration file."""
    served = json.loads(shared_path("reference", "kube-scheduler-configz.json").read_text())["componentconfig"]
    document = default_configuration().effective_document()
    # The recorded scheduler ran with other flags: no leader election, and another path of its kubeconfig.
    served["leaderElection"]["leaderElect"] = True
    served["clientConnection"]["kubeconfig"] = ""
    assert document == served


@pytest.mark.parametrize(
    "path_of_cases",
    [
        pytest.param(lambda: recording("config", "cases.jsonl.gz"), id="written cases"),
        pytest.param(lambda: shared_path("data", "answers", "config_files.jsonl.gz"), id="files of other projects"),
    ],
)
def test_recorded_cases_give_the_recorded_results(path_of_cases: Callable[[], Path]) -> None:
    from bayplan.conformance.config import answer_config_case

    differing = []
    with gzip.open(path_of_cases(), "rt", encoding="utf-8") as lines:
        for line in lines:
            recorded = json.loads(line)
            if answer_config_case(recorded["case"]) != recorded["want"]:
                differing.append(recorded["case"]["id"])
    assert differing == []


@pytest.mark.parametrize(
    ("written", "want"),
    [
        pytest.param("50", "50", id="a whole number"),
        pytest.param("50.5", "50.5", id="a fraction"),
        pytest.param("1e20", "100000000000000000000", id="below 1e21 as a whole number"),
        pytest.param(
            "1.1e19", "11000000000000000000", id="with the digits of the float32, not of the number behind them"
        ),
        pytest.param("1e22", "1e+22", id="above with an exponent"),
    ],
)
def test_numbers_are_formatted_as_in_go(written: str, want: str) -> None:
    document = declared_document(load_configuration(HEADER + f"clientConnection: {{qps: {written}}}\n").declared)
    assert json_text(document["clientConnection"]).split('"qps":')[1].split(",")[0] == want
