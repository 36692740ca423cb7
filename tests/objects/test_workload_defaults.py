"""Defaults of the objects from which controllers make pods."""

from typing import Any

import pytest

from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import decode, encode

Json = dict[str, Any]
SPEC = {"restartPolicy": "Always", "schedulerName": "default-scheduler", "terminationGracePeriodSeconds": 30}
IN_DEFAULT = {"namespace": "default"}
TEMPLATE = {"spec": SPEC}
VERSIONS = {"ReplicationController": "v1", "Job": "batch/v1", "CronJob": "batch/v1"}


@pytest.mark.parametrize(
    ("kind", "fields", "want"),
    [
        pytest.param(
            "Deployment",
            {"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}},
            {
                "metadata": IN_DEFAULT,
                "spec": {
                    "replicas": 1,
                    "selector": {"matchLabels": {"a": "b"}},
                    "template": {"metadata": {"labels": {"a": "b"}}, "spec": SPEC},
                    "strategy": {
                        "type": "RollingUpdate",
                        "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
                    },
                    "revisionHistoryLimit": 10,
                    "progressDeadlineSeconds": 600,
                },
            },
            id="a Deployment of an older version, without selector",
        ),
        pytest.param(
            "Deployment",
            {"spec": {"replicas": 0, "strategy": {"type": "Recreate"}, "revisionHistoryLimit": 0}},
            {
                "metadata": IN_DEFAULT,
                "spec": {
                    "replicas": 0,
                    "template": TEMPLATE,
                    "strategy": {"type": "Recreate"},
                    "revisionHistoryLimit": 0,
                    "progressDeadlineSeconds": 600,
                },
            },
            id="a Deployment with zeros",
        ),
        pytest.param(
            "ReplicaSet",
            {"spec": {"selector": {"matchLabels": {"a": "b"}}}},
            {
                "metadata": IN_DEFAULT,
                "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE},
            },
            id="a ReplicaSet",
        ),
        pytest.param(
            "ReplicationController",
            {"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}},
            {
                "metadata": {"namespace": "default", "labels": {"a": "b"}},
                "spec": {
                    "replicas": 1,
                    "selector": {"a": "b"},
                    "template": {"metadata": {"labels": {"a": "b"}}, "spec": SPEC},
                },
            },
            id="a ReplicationController",
        ),
        pytest.param(
            "StatefulSet",
            {"spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}},
            {
                "metadata": IN_DEFAULT,
                "spec": {
                    "replicas": 1,
                    "template": TEMPLATE,
                    "volumeClaimTemplates": [
                        {
                            "metadata": {"name": "data"},
                            "spec": {"volumeMode": "Filesystem"},
                            "status": {"phase": "Pending"},
                        }
                    ],
                    "podManagementPolicy": "OrderedReady",
                    "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
                    "revisionHistoryLimit": 10,
                    "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
                },
            },
            id="a StatefulSet",
        ),
        pytest.param(
            "DaemonSet",
            {"spec": {"updateStrategy": {"rollingUpdate": {"maxSurge": 2}}}},
            {
                "metadata": IN_DEFAULT,
                "spec": {
                    "template": TEMPLATE,
                    "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 2}},
                    "revisionHistoryLimit": 10,
                },
            },
            id="a DaemonSet",
        ),
        pytest.param(
            "Job",
            {"spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"restartPolicy": "Never"}}}},
            {
                "metadata": {"namespace": "default", "labels": {"a": "b"}},
                "spec": {
                    "parallelism": 1,
                    "completions": 1,
                    "backoffLimit": 6,
                    "manualSelector": False,
                    "template": {"metadata": {"labels": {"a": "b"}}, "spec": {**SPEC, "restartPolicy": "Never"}},
                    "completionMode": "NonIndexed",
                    "suspend": False,
                    "podReplacementPolicy": "TerminatingOrFailed",
                },
            },
            id="a Job",
        ),
        pytest.param(
            "Job",
            {
                "spec": {
                    "parallelism": 3,
                    "backoffLimitPerIndex": 1,
                    "podFailurePolicy": {"rules": [{"action": "Count"}]},
                }
            },
            {
                "metadata": IN_DEFAULT,
                "spec": {
                    "parallelism": 3,
                    "podFailurePolicy": {"rules": [{"action": "Count"}]},
                    "backoffLimit": 2**31 - 1,
                    "backoffLimitPerIndex": 1,
                    "manualSelector": False,
                    "template": TEMPLATE,
                    "completionMode": "NonIndexed",
                    "suspend": False,
                    "podReplacementPolicy": "Failed",
                },
            },
            id="a Job that works off a queue",
        ),
        pytest.param(
            "CronJob",
            {"spec": {"schedule": "* * * * *"}},
            {
                "metadata": IN_DEFAULT,
                "spec": {
                    "schedule": "* * * * *",
                    "concurrencyPolicy": "Allow",
                    "suspend": False,
                    "jobTemplate": {"spec": {"template": TEMPLATE}},
                    "successfulJobsHistoryLimit": 3,
                    "failedJobsHistoryLimit": 1,
                },
            },
            id="a CronJob",
        ),
    ],
)
def test_workloads_get_their_defaults(kind: str, fields: Json, want: Json) -> None:
    head = {"apiVersion": VERSIONS.get(kind, "apps/v1"), "kind": kind}
    item = default_object(decode({**head, **fields}))
    assert encode(item) == {**head, **want}
    assert default_object(item) is item
