"""Each problem of a configuration is reported separately, with its line, column and path."""

from __future__ import annotations

import gzip
import json
from functools import partial
from pathlib import Path

import pytest

from bayplan.framework.configuration.field_errors import path_of, steps_of
from bayplan.framework.configuration.loading import examine_configuration
from bayplan.framework.configuration.positions import Place, TextPositions
from bayplan.framework.configuration.problems import list_problems
from bayplan.framework.feature_gates import FeatureGates

ROOT = Path(__file__).resolve().parents[3]
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
TEXT = """a: 1
b:
  - c: x
    d: {e: y}
  - [1, 2]
"""


@pytest.mark.parametrize(
    ("path", "steps", "shown"),
    [
        ("profiles[0].plugins", ("profiles", 0, "plugins"), "$.profiles[0].plugins"),
        (".profiles[1]", ("profiles", 1), "$.profiles[1]"),
        ("matchLabels[app]", ("matchLabels", "app"), "$.matchLabels.app"),
        ("", (), "$"),
    ],
)
def test_steps_and_paths_round_trip(path: str, steps: tuple[str | int, ...], shown: str) -> None:
    assert steps_of(path) == steps
    assert path_of(steps) == shown


@pytest.mark.parametrize(
    ("path", "want"),
    [
        pytest.param("a", (1, 4), id="a value"),
        pytest.param("b", (2, 1), id="a list by its key"),
        pytest.param("b[0]", (3, 5), id="an element"),
        pytest.param("b[0].c", (3, 8), id="a value in an element"),
        pytest.param("b[0].d.e", (4, 12), id="in flow style"),
        pytest.param("b[1][1]", (5, 9), id="an element of an element"),
        pytest.param("b[0].D.E", (4, 12), id="case does not matter"),
        pytest.param("b[0].f.g", (3, 5), id="a missing field has the position of its parent"),
        pytest.param("f", (1, 1), id="missing at the top"),
        pytest.param("b[7].c", (2, 1), id="a missing element"),
    ],
)
def test_text_positions_finds_line_and_column_of_a_path(path: str, want: tuple[int, int]) -> None:
    place = TextPositions(TEXT).place(steps_of(path))
    assert (place.line, place.column) == want
    assert place.path == path_of(steps_of(path))


@pytest.mark.parametrize("text", ["a: [", "\x00", ""])
def test_unparsable_text_has_no_positions(text: str) -> None:
    assert TextPositions(text).place(("a",)) == Place(0, 0, "$.a")


def found(text: str) -> list[str]:
    return [
        problem.line("f") for problem in list_problems(text, examine_configuration(text), examine_configuration, ())
    ]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("", [], id="nothing is wrong"),
        pytest.param(
            "parallelism: 0\nprofiles:\n- {schedulerName: a}\n- {schedulerName: a}\n",
            [
                "f:3:14 $.parallelism: Invalid value: 0: should be an integer value greater than zero",
                "f:6:19 $.profiles[1].schedulerName: Duplicate value: {}",
            ],
            id="validation",
        ),
        pytest.param(
            "profiles:\n- plugins: {}\n- schedulerName: b\n",
            ["f:4:3 $.profiles[0].schedulerName: Required value"],
            id="a field that is missing",
        ),
        pytest.param(
            "foo: 1\nprofiles:\n- plugins:\n    scores: {}\n",
            ["f:3:1 $.foo: unknown field", "f:6:5 $.profiles[0].plugins.scores: unknown field; try 'score'"],
            id="unknown fields",
        ),
        pytest.param(
            "profiles:\n- pluginConfig:\n  - name: InterPodAffinity\n    args: {weight: 1, more: 2}\n",
            [
                "f:6:12 $.profiles[0].pluginConfig[0].args.weight: unknown field",
                "f:6:23 $.profiles[0].pluginConfig[0].args.more: unknown field",
            ],
            id="unknown arguments",
        ),
        pytest.param(
            "parallelism: 1\nparallelism: 2\n",
            ['f:4:1 $.parallelism: key "parallelism" already set in map'],
            id="a duplicate key",
        ),
        pytest.param(
            'profiles:\n- plugins: {score: {enabled: [{name: NodeAffinity}, {name: ImageLocality, weight: "2"}]}}\n',
            [
                "f:4:83 $.profiles[0].plugins.score.enabled[1].weight: json: cannot unmarshal string into Go struct field "
                "Plugin.profiles.plugins.score.enabled.weight of type int32"
            ],
            id="a wrong type deep in lists: the element that has it",
        ),
        pytest.param(
            "leaderElection: {renewDeadline: 5s, leaseDuration: x}\n",
            ['f:3:52 $.leaderElection.leaseDuration: time: invalid duration "x"'],
            id="a duration, for which upstream reports no path",
        ),
        pytest.param(
            "a: b: c\n", ["f:3:1 $: mapping values are not allowed in this context"], id="what is not YAML: the line"
        ),
        pytest.param(
            "profiles:\n- plugins: {filter: {enabled: [{name: NodeName}, {name: None-Such}]}}\n",
            ['f:4:57 $.profiles[0].plugins.filter.enabled[1].name: FilterPlugin "None-Such" does not exist'],
            id="an unknown plugin",
        ),
        pytest.param(
            "profiles:\n- schedulerName: a\n- schedulerName: b\n  plugins: {bind: {disabled: [{name: '*'}]}}\n",
            ['f:5:3 $.profiles[1]: at least one bind plugin is needed for profile with scheduler name "b"'],
            id="what concerns a whole profile",
        ),
        pytest.param(
            "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args: {scoringStrategy: {type: Other, resources: "
            "[{name: cpu, weight: 0}, {name: cpu, weight: 101}]}}\n",
            [
                'f:6:36 $.profiles[0].pluginConfig[0].args.scoringStrategy.type: Unsupported value: "Other": supported values: '
                '"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"',
                "f:6:99 $.profiles[0].pluginConfig[0].args.scoringStrategy.resources[1].weight: Invalid value: 101: resource "
                "weight of cpu not in valid range (0, 100]",
            ],
            id="arguments that are checked when the plugin is made",
        ),
    ],
)
def test_problems_are_reported_with_their_positions(text: str, want: list[str]) -> None:
    assert found(HEAD + text) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("kind: KubeSchedulerConfiguration\n", "f:1:1 $.apiVersion: Object 'apiVersion' is missing in"),
        ("apiVersion: v1\n", "f:1:1 $.kind: Object 'Kind' is missing"),
        ("apiVersion: v1\nkind: Policy\n", 'f:1:13 $.apiVersion: no kind "Policy" is registered for version "v1"'),
        ('{"apiVersion": 1, "kind": ""}', "f:1:16 $.apiVersion: couldn't get version/kind"),
        ("[1]", "f:1:1 $: couldn't get version/kind"),
    ],
)
def test_other_documents_have_one_problem_with_a_position(text: str, want: str) -> None:
    [problem] = found(text)
    assert problem.startswith(want)


def test_every_recorded_refusal_has_a_valid_position() -> None:
    recorded = gzip.decompress((ROOT / "conformance" / "config" / "cases.jsonl.gz").read_bytes())
    cases = [json.loads(line)["case"] for line in recorded.splitlines()]
    refused = 0
    for case in cases:
        gates = FeatureGates.from_mapping(case.get("featureGates") or {})
        examine = partial(examine_configuration, feature_gates=gates)
        examination = examine(case["yaml"])
        problems = list_problems(case["yaml"], examination, examine, ())
        assert bool(problems) == (examination.stage is not None), case["id"]
        refused += bool(problems)
        lines = case["yaml"].splitlines()
        for problem in problems:
            place = problem.place
            # If the text is not a YAML document, problems have no place.
            assert place.line == 0 or place.column <= len(lines[place.line - 1]), case["id"]
            assert place.line or not lines or examination.stage == "decode", case["id"]
    assert refused > 100
