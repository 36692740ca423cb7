"""AppArmor profiles of containers, from annotations."""

from __future__ import annotations

import pytest

from bayplan.apiserver.kinds.app_armor import ANNOTATION, profile_of, set_app_armor_profiles
from bayplan.apiserver.model.errors import Cause
from bayplan.apiserver.validation.pod_annotations import profile_annotations
from bayplan.base.plain_data import Document, part, parts

LOCAL: Document = {"type": "Localhost", "localhostProfile": "a/b"}


@pytest.mark.parametrize(
    ("annotation", "want"),
    [
        pytest.param("unconfined", {"type": "Unconfined"}, id="none"),
        pytest.param("runtime/default", {"type": "RuntimeDefault"}, id="the runtime's"),
        pytest.param("localhost/a/b", LOCAL, id="a path"),
        pytest.param("localhost/", None, id="no path"),
        pytest.param("localhost/ a", None, id="a padded path"),
        pytest.param(f"localhost/{'a' * 4096}", None, id="too long a path"),
        pytest.param("unconfined/x", None, id="none, and more"),
        pytest.param("", None, id="empty"),
    ],
)
def test_an_annotation_is_converted_to_an_app_armor_profile(annotation: str, want: Document | None) -> None:
    assert profile_of(annotation) == want


@pytest.mark.parametrize(
    ("spec", "security", "want"),
    [
        pytest.param({}, {}, LOCAL, id="a container without a profile"),
        pytest.param({}, {"appArmorProfile": {"type": "Unconfined"}}, {"type": "Unconfined"}, id="one with its own"),
        pytest.param({"securityContext": {"appArmorProfile": LOCAL}}, {}, None, id="the profile of the pod"),
        pytest.param(
            {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}},
            {},
            LOCAL,
            id="a profile that differs from the pod's",
        ),
        pytest.param({"os": {"name": "windows"}}, {}, None, id="a Windows pod"),
    ],
)
def test_a_container_gets_the_profile_of_its_annotation_unless_already_set(
    spec: Document, security: Document, want: Document | None
) -> None:
    container = {"name": "c", "securityContext": security}
    pod: Document = {
        "metadata": {"annotations": {f"{ANNOTATION}c": "localhost/a/b"}},
        "spec": {**spec, "containers": [container]},
    }
    set_app_armor_profiles(pod)
    [found] = parts(part(pod, "spec"), "containers")
    assert part(found, "securityContext").get("appArmorProfile") == want


@pytest.mark.parametrize(
    ("system", "refused"),
    [pytest.param("linux", True, id="a Linux pod"), pytest.param("windows", False, id="a Windows pod")],
)
def test_an_annotation_must_fit_the_profile_of_the_pod(system: str, refused: bool) -> None:
    spec: Document = {
        "os": {"name": system},
        "securityContext": {"appArmorProfile": LOCAL},
        "containers": [{"name": "c"}],
    }
    found: list[Cause] = []
    profile_annotations({f"{ANNOTATION}c": "unconfined"}, spec, "spec", found)
    assert bool(found) is refused
