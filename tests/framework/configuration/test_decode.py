"""Strict decoding: the kind of text, the types of its fields, unknown and repeated fields; the order of errors."""

import pytest

from bayplan.framework.configuration.loading import examine_configuration
from tests.framework.configuration.configurations import HEADER, JSON_HEADER, examine, examine_args

GROUP = "kubescheduler.config.k8s.io"
SCHEME = 'in scheme "pkg/runtime/scheme.go:111"'
FIND_KIND = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'


def refusal(text: str | bytes) -> str | None:
    found = examine_configuration(text)
    assert (found.stage, found.configuration) == ("decode", None), found
    return found.error


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", "Object 'Kind' is missing in ''"),
        ("# nothing\n", "Object 'Kind' is missing in '# nothing\n'"),
        ("kind: X\n", "Object 'apiVersion' is missing in 'kind: X\n'"),
        ("apiVersion: v1\n", "Object 'Kind' is missing in 'apiVersion: v1\n'"),
        ("kind: X\napiVersion: g/\n", "Object 'apiVersion' is missing in 'kind: X\napiVersion: g/\n'"),
        ("kind: X\napiVersion: a/b/c\n", "unexpected GroupVersion string: a/b/c"),
        ("kind: X\napiVersion: v1\n", f'no kind "X" is registered for version "v1" {SCHEME}'),
        (
            "- a\n",
            f"couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type {FIND_KIND}",
        ),
        (
            "kind: 5\napiVersion: v1\n",
            "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of "
            "type string",
        ),
        (
            "{a: b}",
            "couldn't get version/kind; json parse error: invalid character 'a' looking for beginning of object key string",
        ),
        (
            f"apiVersion: {GROUP}/v1\nkind: NodeAffinityArgs\n",
            f"couldn't decode as KubeSchedulerConfiguration, got {GROUP}/v1, Kind=NodeAffinityArgs: ",
        ),
        (
            f"apiVersion: {GROUP}/v1\nkind: NodeAffinityArgs\nx: 1\n",
            'strict decoding error: unknown field "x"',
        ),
        (
            "apiVersion: other/__internal\nkind: Policy\n",
            f'no kind "Policy" is registered for the internal version of group "other" {SCHEME}',
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_text_without_a_registered_kind_is_refused(text: str, want: str) -> None:
    assert refusal(text) == want


@pytest.mark.parametrize("version", ["v1alpha1", "v1alpha2", "v1beta1", "v1beta2", "v1beta3", "v2"])
def test_other_versions_are_refused(version: str) -> None:
    text = f"apiVersion: {GROUP}/{version}\nkind: KubeSchedulerConfiguration\n"
    assert (
        refusal(text) == f'no kind "KubeSchedulerConfiguration" is registered for version "{GROUP}/{version}" {SCHEME}'
    )


def test_policy_files_are_refused() -> None:
    assert (
        refusal('{"kind": "Policy", "apiVersion": "v1"}') == f'no kind "Policy" is registered for version "v1" {SCHEME}'
    )


@pytest.mark.parametrize(
    ("body", "want"),
    [
        ("foo: 1\nbar: 2\n", 'unknown field "bar", unknown field "foo"'),
        ("Parallelism: 1\n", 'unknown field "Parallelism"'),
        ("foo: {bar: 1, baz: {}}\n", 'unknown field "foo"'),
        ("leaderElection: {leaderElects: true}\n", 'unknown field "leaderElection.leaderElects"'),
        (
            "profiles:\n- plugins: {score: {enabled: [{}, {wieght: 1}]}}\n",
            'unknown field "profiles[0].plugins.score.enabled[1].wieght"',
        ),
        ("foo: 1\nfoo: 2\n", 'yaml: unmarshal errors:\n  line 4: key "foo" already set in map, unknown field "foo"'),
        (
            "profiles:\n- pluginConfig:\n  - {name: InterPodAffinity, args: {b: 1, a: 2}}\n"
            "  - {name: NodeAffinity, args: {c: 1}}\nx: 1\n",
            'unknown field "x", decoding .profiles[0].pluginConfig[0]: strict decoding error: decoding args for plugin '
            'InterPodAffinity: strict decoding error: unknown field "a", unknown field "b", decoding '
            ".profiles[0].pluginConfig[1]: strict decoding error: decoding args for plugin NodeAffinity: strict decoding "
            'error: unknown field "c"',
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_unknown_and_duplicate_fields_are_reported_together(body: str, want: str) -> None:
    assert refusal(HEADER + body) == f"strict decoding error: {want}"


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        ('"parallelism": 1, "parallelism": 2', 'duplicate field "parallelism"'),
        ('"kind": "KubeSchedulerConfiguration"', 'duplicate field "kind"'),
        ('"x": 1, "a": 2, "x": 3', 'unknown field "x", unknown field "a"'),
        (
            '"profiles": [{"schedulerName": "a", "schedulerName": "b"}]',
            'duplicate field "profiles[0].schedulerName"',
        ),
        (
            '"profiles": [{"pluginConfig": [{"name": "PodTopologySpread", "args": {"defaultConstraints": [{"labelSelector":'
            ' {"matchLabels": {"a": "b", "a": "c"}}}]}}]}]',
            "decoding .profiles[0].pluginConfig[0]: strict decoding error: decoding args for plugin PodTopologySpread: "
            'strict decoding error: duplicate field "defaultConstraints[0].labelSelector.matchLabels.a"',
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_duplicate_json_fields_are_reported_with_their_path(fields: str, want: str) -> None:
    assert refusal(f"{{{JSON_HEADER}, {fields}}}") == f"strict decoding error: {want}"


def test_at_most_100_unknown_fields_are_reported() -> None:
    body = "".join(f"x{number:03}: 1\n" for number in range(150))
    error = refusal(HEADER + body) or ""
    assert error.count("unknown field") == 100


@pytest.mark.parametrize(
    ("body", "want"),
    [
        ("parallelism: '1'", "string into Go struct field KubeSchedulerConfiguration.parallelism of type int32"),
        ("parallelism: 1.5", "number 1.5 into Go struct field KubeSchedulerConfiguration.parallelism of type int32"),
        (
            "parallelism: 2147483648",
            "number 2147483648 into Go struct field KubeSchedulerConfiguration.parallelism of type int32",
        ),
        ("parallelism: true", "bool into Go struct field KubeSchedulerConfiguration.parallelism of type int32"),
        (
            "podMaxBackoffSeconds: 9223372036854775808",
            "number 9223372036854775808 into Go struct field KubeSchedulerConfiguration.podMaxBackoffSeconds of type int64",
        ),
        (
            "enableProfiling: 1",
            "number into Go struct field KubeSchedulerConfiguration.DebuggingConfiguration.enableProfiling of type bool",
        ),
        (
            "profiles: {}",
            "object into Go struct field KubeSchedulerConfiguration.profiles of type []v1.KubeSchedulerProfile",
        ),
        (
            "leaderElection: []",
            "array into Go struct field KubeSchedulerConfiguration.leaderElection of type v1alpha1.LeaderElectionConfiguration",
        ),
        (
            "clientConnection: {qps: 1e39}",
            "number 1e+39 into Go struct field ClientConnectionConfiguration.clientConnection.qps of type float32",
        ),
        (
            "leaderElection: {leaseDuration: 5}",
            "number into Go struct field LeaderElectionConfiguration.leaderElection.leaseDuration of type string",
        ),
        (
            "extenders: [{tlsConfig: {caData: 5}}]",
            "number into Go struct field ExtenderTLSConfig.extenders.tlsConfig.caData of type []uint8",
        ),
        (
            "extenders: [{tlsConfig: {caData: [1, 256]}}]",
            "number 256 into Go struct field ExtenderTLSConfig.extenders.tlsConfig.caData of type uint8",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_types_are_refused_with_the_messages_of_go(body: str, want: str) -> None:
    assert refusal(HEADER + body + "\n") == f"json: cannot unmarshal {want}"


@pytest.mark.parametrize(
    ("body", "want"),
    [
        (
            "x: 1\nparallelism: a\n",
            "json: cannot unmarshal string into Go struct field KubeSchedulerConfiguration.parallelism of type int32",
        ),
        (
            "parallelism: a\nprofiles: 5\n",
            "json: cannot unmarshal string into Go struct field KubeSchedulerConfiguration.parallelism of type int32",
        ),
        ("clientConnection: {burst: a}\nleaderElection: {retryPeriod: x}\n", 'time: invalid duration "x"'),
        ("leaderElection: {retryPeriod: null}\n", 'time: invalid duration ""'),
        (
            "x: 1\nprofiles: [{pluginConfig: [{name: NodeAffinity, args: 5}]}]\n",
            "decoding .profiles[0].pluginConfig[0]: decoding "
            "args for plugin NodeAffinity: couldn't get version/kind; json parse error: json: cannot unmarshal number into Go "
            f"value of type {FIND_KIND}",
        ),
    ],
    ids=[
        "a wrong type beats an unknown field",
        "the first wrong type counts, by the order of the keys",
        "a bad duration beats a wrong type before it",
        "null is not a duration",
        "arguments that can't be read beat an unknown field",
    ],
)
def test_decoding_errors_are_reported_in_upstreams_order(body: str, want: str) -> None:
    assert refusal(HEADER + body) == want


@pytest.mark.parametrize(
    ("plugin", "args", "want"),
    [
        (
            "InterPodAffinity",
            "{hardPodAffinityWeight: x}",
            "decoding args for plugin InterPodAffinity: json: cannot unmarshal string into Go struct field "
            "InterPodAffinityArgs.hardPodAffinityWeight of type int32",
        ),
        (
            "InterPodAffinity",
            f"{{apiVersion: {GROUP}/v1beta3}}",
            'decoding args for plugin InterPodAffinity: no kind "InterPodAffinityArgs" is registered for version '
            f'"{GROUP}/v1beta3" {SCHEME}',
        ),
        (
            "InterPodAffinity",
            "{kind: NodeAffinityArgs, x: 1}",
            f"args for plugin InterPodAffinity were not of type InterPodAffinityArgs.{GROUP}, got NodeAffinityArgs.{GROUP}",
        ),
        (
            "NodeResourcesFit",
            "{apiVersion: other/, ignoredResources: [a<b]}",
            "decoding args for plugin NodeResourcesFit: Object 'apiVersion' is missing in "
            r"""'{"apiVersion":"other/","ignoredResources":["a\u003cb"]}'""",
        ),
        (
            "PodTopologySpread",
            "{defaultConstraints: [{labelSelector: {matchLabels: {a: 1}}}]}",
            "decoding args for plugin PodTopologySpread: json: cannot unmarshal number into Go struct field "
            "LabelSelector.defaultConstraints.labelSelector.matchLabels of type string",
        ),
        (
            "NodeResourcesFit",
            "{scoringStrategy: {type: 5}}",
            "decoding args for plugin NodeResourcesFit: json: cannot unmarshal number into Go struct field "
            "ScoringStrategy.scoringStrategy.type of type v1.ScoringStrategyType",
        ),
        (
            "DynamicResources",
            "{filterTimeout: 3}",
            "decoding args for plugin DynamicResources: json: cannot unmarshal number into Go "
            "struct field DynamicResourcesArgs.filterTimeout of type string",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_plugin_arguments_are_decoded_strictly(plugin: str, args: str, want: str) -> None:
    assert examine_args(plugin, args).error == f"decoding .profiles[0].pluginConfig[0]: {want}"


@pytest.mark.parametrize(
    "body",
    [
        "parallelism: null\nprofiles: null\nextenders: null\nleaderElection: null\nclientConnection: null\n",
        "profiles: []\n",
        "profiles: [null]\n",
        "profiles: [{plugins: null, pluginConfig: null, schedulerName: null, percentageOfNodesToScore: null}]\n",
        "profiles: [{pluginConfig: [{name: NodeAffinity, args: null}, {name: VolumeBinding}]}]\n",
    ],
    ids=["nulls", "no profiles", "a null profile", "nulls in a profile", "no arguments"],
)
def test_null_and_empty_values_get_defaults(body: str) -> None:
    found = examine(body)
    assert found.error is None
    assert found.declared is not None
    assert found.declared.parallelism == 16
    assert [profile.scheduler_name for profile in found.declared.profiles] == ["default-scheduler"]


def test_integral_floats_are_accepted_for_integers_in_yaml() -> None:
    found = examine("parallelism: 16.0\npodMaxBackoffSeconds: 1e1\n")
    assert found.error is None
    assert found.declared is not None
    assert (found.declared.parallelism, found.declared.pod_max_backoff_seconds) == (16, 10)


def test_integral_floats_are_refused_for_integers_in_json() -> None:
    want = (
        "json: cannot unmarshal number 16.0 into Go struct field KubeSchedulerConfiguration.parallelism of type int32"
    )
    assert refusal(f'{{{JSON_HEADER}, "parallelism": 16.0}}') == want


def test_the_internal_version_uses_go_names_without_defaults() -> None:
    text = f"apiVersion: {GROUP}/__internal\nkind: KubeSchedulerConfiguration\nParallelism: 7\n"
    found = examine_configuration(text)
    assert found.declared is not None
    assert (found.declared.parallelism, found.declared.profiles) == (7, ())
    assert found.messages == (
        "profiles: Required value",
        "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0",
    )
    assert refusal(text + "parallelism: 7\n") == 'strict decoding error: unknown field "parallelism"'
    assert refusal(text + "Profiles: [{PluginConfig: [{Args: {}}]}]\n") == (
        "json: cannot unmarshal object into Go struct field PluginConfig.Profiles.PluginConfig.Args of type runtime.Object"
    )


def test_plugin_arguments_of_the_internal_version_get_no_defaults() -> None:
    found = examine_args("DefaultPreemption", f"{{apiVersion: {GROUP}/__internal, MinCandidateNodesPercentage: 5}}")
    assert found.configuration is not None
    args = found.configuration.profiles[0].plugin_arguments["DefaultPreemption"]
    assert repr(args) == "DefaultPreemptionArgs(min_candidate_nodes_percentage=5, min_candidate_nodes_absolute=0)"


def test_bytes_and_text_give_the_same_result() -> None:
    assert examine_configuration(HEADER.encode()) == examine_configuration(HEADER)


def test_deeply_nested_json_is_refused() -> None:
    error = refusal('{"a":' * 20_000)
    assert error == "couldn't get version/kind; json parse error: exceeded max depth"
