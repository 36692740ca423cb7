"""Problems found after a configuration is parsed: limits, arguments, extenders; order and wording are upstream's."""

import pytest

from tests.framework.configuration.configurations import examine, examine_args

NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.mark.parametrize(
    ("body", "want"),
    [
        ("clientConnection: {burst: -1}", ["clientConnection.burst: Invalid value: -1: must be non-negative"]),
        ("parallelism: 0", ["parallelism: Invalid value: 0: should be an integer value greater than zero"]),
        ("percentageOfNodesToScore: 101", ["percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"]),
        (
            "podInitialBackoffSeconds: 0\npodMaxBackoffSeconds: -1",
            [
                "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0",
                "podMaxBackoffSeconds: Invalid value: -1: must be greater than or equal to PodInitialBackoffSeconds",
            ],
        ),
        ("leaderElection: {leaderElect: false, leaseDuration: -1s, resourceLock: x}", []),
        (
            "leaderElection: {leaseDuration: 5s}",
            ['leaderElection.leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline`'],
        ),
        (
            "leaderElection: {retryPeriod: -1.5s, resourceLock: endpoints}",
            [
                'leaderElection.retryPeriod: Invalid value: "-1.5s": must be greater than zero',
                'leaderElection.resourceLock: Invalid value: "endpoints": resourceLock value must be "leases"',
            ],
        ),
        (
            "profiles: [{schedulerName: a}, {schedulerName: a}, {}]",
            [
                "profiles[1].schedulerName: Duplicate value: {}",
                "profiles[2].schedulerName: Required value",
            ],
        ),
        ("profiles: [{schedulerName: ''}]", ["profiles[0].schedulerName: Required value"]),
        (
            "profiles: [{plugins: {filter: {enabled: [{name: EBSLimits}]}, multiPoint: {enabled: [{name: GCEPDLimits}]}}}]",
            [
                'profiles[0].plugins.filter.enabled[0]: Invalid value: "EBSLimits": was invalid in version "v1" '
                '(KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")'
            ],
        ),
        (
            "profiles: [{pluginConfig: [{name: CinderLimits}, {name: X}, {name: X}]}]",
            [
                'profiles[0].pluginConfig[0]: Invalid value: "CinderLimits": was invalid in version "v1" '
                '(KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")',
                'profiles[0].pluginConfig[2]: Duplicate value: "X"',
            ],
        ),
        (
            "profiles: [{plugins: {queueSort: {enabled: [{name: A}, {name: B}]}}}]",
            ["profiles[0].plugins.queueSort.Enabled: Invalid value: 2: only one queue sort plugin can be enabled"],
        ),
        (
            "profiles: [{schedulerName: a}, {schedulerName: b, plugins: {queueSort: {enabled: [{name: PrioritySort, "
            "weight: 2}]}}}]",
            [
                'profiles[1].plugins.queueSort: Invalid value: {"Enabled":[{"Name":"PrioritySort","Weight":2}],'
                '"Disabled":null}: must be the same for all profiles'
            ],
        ),
        (
            "profiles: [{schedulerName: a, plugins: {queueSort: {enabled: [{name: VolumeBinding}]}}}, "
            "{schedulerName: b, "
            "plugins: {queueSort: {enabled: [{name: VolumeBinding}]}}, pluginConfig: [{name: VolumeBinding, "
            "args: {bindTimeoutSeconds: 5}}]}]",
            [
                'profiles[1].pluginConfig.args: Invalid value: {"BindTimeoutSeconds":5,"Shape":null}: '
                "queueSort must be the same for all profiles"
            ],
        ),
        (
            "profiles: [{schedulerName: a, plugins: {queueSort: {enabled: [{name: Own}]}}, "
            "pluginConfig: [{name: Own, args: {x: 1}}]}, "
            "{schedulerName: b, plugins: {queueSort: {enabled: [{name: Own}]}}, "
            "pluginConfig: [{name: Own, args: {x: [2, a]}}]}]",
            [
                'profiles[1].pluginConfig.args: Invalid value: {"x":[2,"a"]}: queueSort must be the same for all profiles'
            ],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_out_of_range_settings_are_refused(body: str, want: list[str]) -> None:
    found = examine(body + "\n")
    assert list(found.messages) == want
    assert found.stage == ("validation" if want else None)


@pytest.mark.parametrize(
    ("messages", "want"),
    [
        ("parallelism: 0", "parallelism: Invalid value: 0: should be an integer value greater than zero"),
        (
            "parallelism: 0\nprofiles: [{}, {}]",
            "[parallelism: Invalid value: 0: should be an integer value greater than zero, profiles[0].schedulerName: "
            "Required value, profiles[1].schedulerName: Required value, profiles[1].schedulerName: Duplicate value: {}]",
        ),
        (
            "extenders: [{managedResources: [{name: cpu}, {name: cpu}]}, {managedResources: [{name: cpu}]}]",
            '[extenders[0].managedResources[0].name: Invalid value: "cpu": is an invalid extended resource name, '
            'extenders[0].managedResources[1].name: Invalid value: "cpu": is an invalid extended resource name, '
            'extenders[0].managedResources[1].name: Invalid value: "cpu": duplicate extender managed resource name, '
            'extenders[1].managedResources[0].name: Invalid value: "cpu": is an invalid extended resource name, '
            'extenders[1].managedResources[0].name: Invalid value: "cpu": duplicate extender managed resource name]',
        ),
    ],
    ids=["one", "several in order", "of extenders"],
)
def test_messages_are_joined_like_upstream(messages: str, want: str) -> None:
    assert examine(messages + "\n").error == want


@pytest.mark.parametrize(
    ("plugin", "args", "want"),
    [
        (
            "DefaultPreemption",
            "{minCandidateNodesPercentage: -1, minCandidateNodesAbsolute: -2}",
            [
                "minCandidateNodesPercentage: Invalid value: -1: not in valid range [0, 100]",
                "minCandidateNodesAbsolute: Invalid value: -2: not in valid range [0, inf)",
            ],
        ),
        (
            "DefaultPreemption",
            "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}",
            [
                "minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as minCandidateNodesAbsolute",
                "minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same time as minCandidateNodesPercentage",
            ],
        ),
        (
            "InterPodAffinity",
            "{hardPodAffinityWeight: 101}",
            ["hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]"],
        ),
        (
            "NodeResourcesBalancedAllocation",
            "{resources: [{name: a}, {name: a, weight: 2}]}",
            ['resources[1].name: Duplicate value: "a"', "resources[1].weight: Invalid value: 2: must be 1"],
        ),
        (
            "VolumeBinding",
            "{bindTimeoutSeconds: -1}",
            ["bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative value"],
        ),
        (
            "VolumeBinding",
            "{shape: []}",
            [
                "shape: Invalid value: []: unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
            ],
        ),
        (
            "VolumeBinding",
            "{shape: [{utilization: 3, score: 1}]}",
            [
                'shape: Invalid value: [{"Utilization":3,"Score":1}]: unexpected field `shape`, remove it or turn on the '
                "feature gate StorageCapacityScoring"
            ],
        ),
        (
            "DynamicResources",
            "{filterTimeout: -1ms, bindingTimeout: 999ms}",
            [
                'filterTimeout: Invalid value: "-1ms": must be zero or positive',
                'bindingTimeout: Invalid value: "999ms": must be at least 1 second',
            ],
        ),
        (
            "PodTopologySpread",
            "{defaultConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}]}",
            ['defaultingType: Invalid value: "System": when .defaultConstraints are not empty'],
        ),
        (
            "PodTopologySpread",
            "{defaultingType: List, defaultConstraints: [{topologyKey: a b, whenUnsatisfiable: Maybe, "
            "labelSelector: {}}, {maxSkew: 1}, "
            "{maxSkew: 1, topologyKey: a b, whenUnsatisfiable: Maybe}]}",
            [
                "defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)",
                f'defaultConstraints[0].topologyKey: Invalid value: "a b": {NAME_RULE}',
                'defaultConstraints[0].whenUnsatisfiable: Unsupported value: "Maybe": supported values: "DoNotSchedule", '
                '"ScheduleAnyway"',
                "defaultConstraints[0].labelSelector: Forbidden: constraint must not define a selector, as they deduced "
                "for each pod",
                "defaultConstraints[1].topologyKey: Required value: can not be empty",
                "defaultConstraints[1].whenUnsatisfiable: Required value: can not be empty",
                f'defaultConstraints[2].topologyKey: Invalid value: "a b": {NAME_RULE}',
                'defaultConstraints[2].whenUnsatisfiable: Unsupported value: "Maybe": supported values: "DoNotSchedule", '
                '"ScheduleAnyway"',
                'defaultConstraints[2]: Duplicate value: "{a b, Maybe}"',
            ],
        ),
        (
            "NodeAffinity",
            "{addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, "
            "operator: In}, {key: a, operator: In, values: []}], matchFields: [{key: b, operator: NotIn, values: []}]}]}}}",
            [
                f"addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].{rest}"
                for rest in (
                    "matchExpressions[0].values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
                    "matchExpressions[1].values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
                    "matchFields[0].values: Invalid value: []: must have one element",
                )
            ],
        ),
        (
            "NodeAffinity",
            "{addedAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, preference: {matchExpressions: [{}]}}, "
            "{weight: 1, preference: {matchExpressions: [{key: a, operator: Is}]}}]}}",
            [
                "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[1].matchExpressions[0].operator: Unsupported "
                'value: "Is": supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
            ],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_out_of_range_plugin_arguments_are_refused(plugin: str, args: str, want: list[str]) -> None:
    path = "profiles[0].pluginConfig[0].args."
    assert [message.removeprefix(path) for message in examine_args(plugin, args).messages] == want


@pytest.mark.parametrize(
    ("plugin", "args", "gates", "want"),
    [
        (
            "VolumeBinding",
            "{shape: [{utilization: 5, score: 11}, {utilization: 5, score: -1}]}",
            {"StorageCapacityScoring": True},
            [
                "shape[1].utilization: Invalid value: 5: values must be sorted in increasing order",
                "shape[0].score: Invalid value: 11: not in valid range [0, 10]",
                "shape[1].score: Invalid value: -1: not in valid range [0, 10]",
            ],
        ),
        (
            "DynamicResources",
            "{filterTimeout: 0s, bindingTimeout: 5s}",
            {"DRASchedulerFilterTimeout": False, "DRADeviceBindingConditions": False},
            [
                "filterTimeout: Forbidden: DRASchedulingFilterTimeout feature gate is disabled",
                "bindingTimeout: Forbidden: DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled",
            ],
        ),
    ],
    ids=["a shape with the shape gate on", "time limits where nothing has them"],
)
def test_validation_of_plugin_arguments_depends_on_gates(
    plugin: str, args: str, gates: dict[str, bool], want: list[str]
) -> None:
    path = "profiles[0].pluginConfig[0].args."
    assert [message.removeprefix(path) for message in examine_args(plugin, args, **gates).messages] == want


@pytest.mark.parametrize(
    ("extenders", "want"),
    [
        ("[{prioritizeVerb: p}]", ["extenders[0].weight: Invalid value: 0: must have a positive weight applied to it"]),
        ("[{filterVerb: f}]", []),
        (
            "[{bindVerb: b}, {bindVerb: b}]",
            ['extenders: Invalid value: "found 2 extenders implementing bind": only one extender can implement bind'],
        ),
        (
            "[{managedResources: [{name: 'a<b/c'}]}]",
            [
                r'extenders[0].managedResources[0].name: Invalid value: "a\u003cb/c": prefix part a lowercase RFC 1123 '
                "subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
                "alphanumeric character (e.g. 'example.com', regex used for validation is "
                r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ],
        ),
        (
            "[{managedResources: [{name: x.kubernetes.io/a}]}]",
            [
                'extenders[0].managedResources[0].name: Invalid value: "x.kubernetes.io/a": is an invalid extended resource name'
            ],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_invalid_extenders_are_refused(extenders: str, want: list[str]) -> None:
    assert list(examine(f"extenders: {extenders}\n").messages) == want
