"""All problems of a configuration at once: from all stages, with places in the text and suggestions."""

from __future__ import annotations

import pytest

from bayplan.base.errors import ConfigurationError
from bayplan.framework.configuration.extension_points import IN_TREE_EXTENSION_POINTS
from bayplan.framework.configuration.loading import examine_configuration, load_configuration
from bayplan.framework.configuration.problems import MAX_PROBLEMS, list_problems
from tests.framework.configuration.configurations import HEADER


def reported(body: str, header: str = HEADER) -> list[str]:
    text = header + body
    found = list_problems(text, examine_configuration(text), examine_configuration, IN_TREE_EXTENSION_POINTS)
    return [problem.line("f") for problem in found]


@pytest.mark.parametrize(
    ("body", "want"),
    [
        pytest.param("parallelism: 4\n", [], id="nothing is wrong"),
        pytest.param(
            "percentageOfNodesToScor: 300\n",
            [
                "f:3:1 $.percentageOfNodesToScor: unknown field; try 'percentageOfNodesToScore'",
                "f:3:26 $.percentageOfNodesToScore: Invalid value: 300: not in valid range [0-100]",
            ],
            id="a misspelt field is corrected, and its value looked at",
        ),
        pytest.param("colour: red\n", ["f:3:1 $.colour: unknown field"], id="no field is near"),
        pytest.param(
            "profiles:\n- plugins: {score: {enabled: [{name: Foo}, {name: NodeAfinity}, {name: Bar, weight: 3}]}}\n",
            [
                'f:4:38 $.profiles[0].plugins.score.enabled[0].name: ScorePlugin "Foo" does not exist',
                'f:4:51 $.profiles[0].plugins.score.enabled[1].name: ScorePlugin "NodeAfinity" does not exist; '
                "try 'NodeAffinity'",
                'f:4:72 $.profiles[0].plugins.score.enabled[2].name: ScorePlugin "Bar" does not exist',
            ],
            id="several plugins that do not exist, with the numbers they have in the text",
        ),
        pytest.param(
            "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args:\n"
            "      scoringStrateg: {type: LeastAlocated}\n",
            [
                "f:7:7 $.profiles[0].pluginConfig[0].args.scoringStrateg: unknown field; try 'scoringStrategy'",
                'f:7:30 $.profiles[0].pluginConfig[0].args.scoringStrategy.type: Unsupported value: "LeastAlocated": '
                'supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"; try \'LeastAllocated\'',
            ],
            id="arguments of a plugin and one of few values",
        ),
        pytest.param(
            "parallelism: many\npodMaxBackoffSeconds: -1\nlader: x\n",
            [
                "f:3:14 $.parallelism: json: cannot unmarshal string into Go struct field "
                "KubeSchedulerConfiguration.parallelism of type int32",
                "f:4:23 $.podMaxBackoffSeconds: Invalid value: -1: must be greater than or equal to PodInitialBackoffSeconds",
                "f:5:1 $.lader: unknown field",
            ],
            id="types, fields and values",
        ),
        pytest.param(
            "extenders:\n- urlPrefx: http://a\n  weight: -1\n  prioritizeVerb: p\n",
            [
                "f:4:3 $.extenders[0].urlPrefx: unknown field; try 'urlPrefix'",
                "f:5:11 $.extenders[0].weight: Invalid value: -1: must have a positive weight applied to it",
            ],
            id="removed items are not reported as missing",
        ),
    ],
)
def test_problems_of_all_stages_are_listed_with_positions_and_suggestions(body: str, want: list[str]) -> None:
    assert reported(body) == want


@pytest.mark.parametrize(
    ("header", "want"),
    [
        pytest.param(
            HEADER.replace("Configuration", "Configration"), "; try 'KubeSchedulerConfiguration'", id="a misspelt kind"
        ),
        pytest.param("apiVersion: v1\nkind: Pod\n", 'scheme "pkg/runtime/scheme.go:111"', id="another kind"),
        pytest.param("kind: [\n", "f:2:1 $: did not find expected ',' or ']'", id="not YAML"),
    ],
)
def test_an_unrecognised_document_has_one_problem(header: str, want: str) -> None:
    [problem] = reported("parallelism: 0\n", header)
    assert problem.endswith(want)


def test_the_number_of_listed_problems_is_limited() -> None:
    plugins = ", ".join(f"{{name: P{number}}}" for number in range(MAX_PROBLEMS + 20))
    assert len(reported(f"profiles:\n- plugins: {{score: {{enabled: [{plugins}]}}}}\n")) == MAX_PROBLEMS


@pytest.mark.parametrize(
    ("body", "want"),
    [
        pytest.param("", "", id="none"),
        pytest.param(
            "paralelism: 3\n", "s.yaml:3:1 $.paralelism: unknown field; try 'parallelism'", id="one, on one line"
        ),
        pytest.param(
            "parallelism: 0\npodInitialBackoff: 1\n",
            "s.yaml has 2 problems:\n"
            "  s.yaml:3:14 $.parallelism: Invalid value: 0: should be an integer value greater than zero\n"
            "  s.yaml:4:1 $.podInitialBackoff: unknown field; try 'podInitialBackoffSeconds'",
            id="two, in a list",
        ),
    ],
)
def test_a_configuration_is_refused_with_all_its_problems(body: str, want: str) -> None:
    error = ""
    try:
        load_configuration(HEADER + body, where="s.yaml")
    except ConfigurationError as refused:
        error = str(refused)
    assert error == want


def test_refusing_an_older_configuration_suggests_config_convert() -> None:
    with pytest.raises(ConfigurationError, match=r"try bayplan config convert$"):
        load_configuration(HEADER.replace("/v1", "/v1beta2"), where="s.yaml")
