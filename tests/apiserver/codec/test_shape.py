"""A round trip through Go's structs: types checked, empty values shown or not, canonical forms, unknown fields."""

from __future__ import annotations

import pytest

from bayplan.apiserver.codec.decode_error import DecodeError
from bayplan.apiserver.codec.shape import Unknown, shape_of

POD = shape_of("io.k8s.api.core.v1.Pod")
NODE = shape_of("io.k8s.api.core.v1.Node")
LEASE = shape_of("io.k8s.api.coordination.v1.Lease")
DEPLOYMENT = shape_of("io.k8s.api.apps.v1.Deployment")


@pytest.mark.parametrize(
    ("value", "want"),
    [
        pytest.param({}, {"metadata": {}, "spec": {"containers": None}, "status": {}}, id="an empty pod"),
        pytest.param(
            {"spec": {"containers": [], "nodeName": "", "hostNetwork": False, "volumes": []}},
            {"metadata": {}, "spec": {"containers": []}, "status": {}},
            id="empty values are dropped if Go omits them",
        ),
        pytest.param(
            {"spec": {"containers": None, "terminationGracePeriodSeconds": 0, "enableServiceLinks": False}},
            {
                "metadata": {},
                "spec": {"containers": None, "terminationGracePeriodSeconds": 0, "enableServiceLinks": False},
                "status": {},
            },
            id="what a pointer points to is kept",
        ),
        pytest.param(
            {"metadata": {"creationTimestamp": None, "labels": {"a": "b"}, "nope": 1}},
            {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": None}, "status": {}},
            id="null and unknown fields are dropped",
        ),
        pytest.param(
            {"metadata": {"labels": {"a": None}}, "spec": {"containers": [], "overhead": {"cpu": None}}},
            {"metadata": {"labels": {"a": ""}}, "spec": {"containers": [], "overhead": {"cpu": "0"}}, "status": {}},
            id="null in a map is the zero value",
        ),
        pytest.param(
            {"status": {"conditions": [{"type": "Ready", "lastTransitionTime": "2026-01-01T02:00:00+02:00"}]}},
            {
                "metadata": {},
                "spec": {"containers": None},
                "status": {
                    "conditions": [
                        {
                            "type": "Ready",
                            "status": "",
                            "lastProbeTime": None,
                            "lastTransitionTime": "2026-01-01T00:00:00Z",
                        }
                    ]
                },
            },
            id="times in UTC, times by value shown as null, required texts shown empty",
        ),
    ],
)
def test_pods_are_normalized_as_in_go(value: dict[str, object], want: dict[str, object]) -> None:
    assert POD.read(value) == want


@pytest.mark.parametrize(
    ("given", "want"),
    [
        pytest.param("0.5", "500m", id="half a core"),
        pytest.param("4000m", "4", id="milli"),
        pytest.param("1048576Ki", "1Gi", id="binary"),
        pytest.param("15e9", "15e9", id="exponents stay"),
        pytest.param(2, "2", id="a number"),
    ],
)
def test_cpu_quantities_are_converted_to_canonical_form(given: object, want: str) -> None:
    read = NODE.read({"status": {"capacity": {"cpu": given}}})
    assert isinstance(read, dict)
    assert read["status"]["capacity"] == {"cpu": want}


@pytest.mark.parametrize(
    ("value", "want"),
    [
        pytest.param(
            {"spec": {"hostNetwork": "yes"}},
            "json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool",
            id="a text for a boolean",
        ),
        pytest.param(
            {"spec": {"containers": {}}},
            "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
            id="an object for a list",
        ),
        pytest.param(
            {"spec": {"containers": [{"ports": [{"containerPort": 1.5}]}]}},
            "json: cannot unmarshal number 1.5 into Go struct field "
            "ContainerPort.spec.containers.ports.containerPort of type int32",
            id="a fraction for an integer",
        ),
        pytest.param(
            {"spec": {"priority": 2**31}},
            "json: cannot unmarshal number 2147483648 into Go struct field PodSpec.spec.priority of type int32",
            id="too large an integer",
        ),
        pytest.param(
            {"metadata": {"labels": {"a": 1}}},
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
            id="a number in a map of texts",
        ),
        pytest.param(
            {"spec": {"overhead": {"cpu": "2 cores"}}},
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            id="a bad quantity",
        ),
        pytest.param({"spec": {"overhead": {"cpu": "1kk"}}}, "unable to parse quantity's suffix", id="a bad suffix"),
        pytest.param(
            {"metadata": {"deletionTimestamp": "2026-13-01T00:00:00Z"}},
            'parsing time "2026-13-01T00:00:00Z": month out of range',
            id="an invalid month",
        ),
    ],
)
def test_type_mismatches_raise_the_error_messages_of_go(value: dict[str, object], want: str) -> None:
    with pytest.raises(DecodeError) as caught:
        POD.read(value)
    assert str(caught.value) == want


def test_blanks_around_a_quantity_are_removed() -> None:
    found = POD.read({"spec": {"overhead": {"cpu": " 1000m "}}})
    assert isinstance(found, dict)
    assert found["spec"]["overhead"] == {"cpu": "1"}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("2026-01-01T00:00:00.123456Z", "2026-01-01T00:00:00.123456Z", id="six digits"),
        pytest.param("2026-01-01T01:00:00.000000+01:00", "2026-01-01T00:00:00.000000Z", id="another zone"),
    ],
)
def test_micro_times_have_six_digits_and_are_converted_to_utc(text: str, want: str) -> None:
    assert LEASE.read({"spec": {"renewTime": text}}) == {"metadata": {}, "spec": {"renewTime": want}}


@pytest.mark.parametrize(
    ("value", "want"),
    [
        pytest.param({"spec": {"containers": [{"name": "c"}]}}, [], id="none"),
        pytest.param(
            {"spec": {"containers": [{"nope": 1}], "x": {}}, "y": 1},
            ["spec.containers[0].nope", "spec.x", "y"],
            id="three",
        ),
        pytest.param({"spec": {"NodeName": "n"}}, ["spec.NodeName"], id="names are case sensitive"),
    ],
)
def test_unknown_fields_are_listed_by_path(value: dict[str, object], want: list[str]) -> None:
    assert POD.unknown_fields(value) == want
    unknown = Unknown()
    POD.read(value, unknown)
    assert unknown.found is bool(want)


def test_reading_a_document_is_idempotent() -> None:
    once = DEPLOYMENT.read({"spec": {"template": {"spec": {"containers": [{"name": "c", "env": [{"name": "A"}]}]}}}})
    assert DEPLOYMENT.read(once) == once


def test_empty_bytes_are_dropped_if_go_omits_them() -> None:
    client_config = shape_of("io.k8s.api.admissionregistration.v1.WebhookClientConfig")
    assert client_config.read({"url": "https://a", "caBundle": ""}) == {"url": "https://a"}
