"""Image names: with the default tag, and of everything that a pod runs or mounts."""

import pytest

from bayplan.objects.image_names import container_images, normalized_image_name
from tests.objects.test_requests import pod_of


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("nginx", "nginx:latest", id="no tag"),
        pytest.param("nginx:1", "nginx:1", id="a tag"),
        pytest.param("registry:5000/nginx", "registry:5000/nginx:latest", id="a port is not a tag"),
        pytest.param("registry:5000/nginx:1", "registry:5000/nginx:1", id="a port and a tag"),
        pytest.param("nginx@sha256:abc", "nginx@sha256:abc", id="a digest"),
        pytest.param("", ":latest", id="no name"),
    ],
)
def test_image_names_without_tag_or_digest_get_latest(name: str, want: str) -> None:
    assert normalized_image_name(name) == want


def test_container_images_include_init_containers_and_image_volumes() -> None:
    pod = pod_of(
        {
            "containers": [{"image": "a"}, {"image": "a"}],
            "initContainers": [{"image": "b:1"}],
            "volumes": [{"name": "v", "image": {"reference": "c"}}, {"name": "w", "emptyDir": {}}],
        }
    )
    assert container_images(pod) == ("b:1", "a:latest", "a:latest", "c:latest")
