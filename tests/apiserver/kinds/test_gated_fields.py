"""Fields whose feature gates are off: dropped from writes, unless the object had them."""

from __future__ import annotations

import pytest

from bayplan.apiserver.kinds.gated_fields import drop_gated_fields

Document = dict[str, object]
SURGE: Document = {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 1, "maxUnavailable": 2}}}}
PLAIN: Document = {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 1}}}}
BUNDLE: Document = {"projected": {"sources": [{"secret": {}}, {"clusterTrustBundle": {"name": "b"}}]}}


@pytest.mark.parametrize(
    ("table", "new", "old", "want"),
    [
        pytest.param("apps/statefulsets", SURGE, None, PLAIN, id="dropped from a new object"),
        pytest.param("apps/statefulsets", SURGE, PLAIN, PLAIN, id="dropped from a change that adds it"),
        pytest.param("apps/statefulsets", SURGE, SURGE, SURGE, id="kept by an object that has it"),
        pytest.param("apps/deployments", SURGE, None, SURGE, id="kept by a kind without the field"),
        pytest.param(
            "pods",
            {"spec": {"volumes": [{"name": "a"}, BUNDLE]}},
            None,
            {"spec": {"volumes": [{"name": "a"}, {"projected": {"sources": [{"secret": {}}, {}]}}]}},
            id="dropped from within lists, whose items stay",
        ),
        pytest.param(
            "batch/cronjobs",
            {"spec": {"jobTemplate": {"spec": {"template": {"spec": {"schedulingGroup": {"a": 1}, "hostname": "h"}}}}}},
            None,
            {"spec": {"jobTemplate": {"spec": {"template": {"spec": {"hostname": "h"}}}}}},
            id="dropped from the pods of a template",
        ),
        pytest.param(
            "resource.k8s.io/resourceslices",
            {"spec": {"devices": [{"attributes": {"a": {"bools": [True], "int": 1}}}]}},
            None,
            {"spec": {"devices": [{"attributes": {"a": {"int": 1}}}]}},
            id="dropped from the values of maps",
        ),
        pytest.param(
            "pods",
            {"spec": {"containers": [{"lifecycle": {"stopSignal": "SIGTERM"}}, {"lifecycle": {}}, {"name": "c"}]}},
            None,
            {"spec": {"containers": [{}, {"lifecycle": {}}, {"name": "c"}]}},
            id="dropped with the lifecycle that held nothing else",
        ),
    ],
)
def test_fields_of_disabled_feature_gates_are_dropped_unless_already_set(
    table: str, new: Document, old: Document | None, want: Document
) -> None:
    sent = {**new}
    drop_gated_fields(table, sent, old)
    assert sent == want
