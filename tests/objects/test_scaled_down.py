"""Pod updates that lower the pod's requests."""

import pytest
from msgspec.structs import replace

from bayplan.objects.pod import ContainerStatus, ResourceRequirements
from bayplan.objects.scaled_down import is_scaled_down
from bayplan.testing.builders import make_pod


@pytest.mark.parametrize(
    ("before", "after", "want"),
    [
        pytest.param({"cpu": "2"}, {"cpu": "1"}, True, id="less"),
        pytest.param({"cpu": "1"}, {}, True, id="dropped"),
        pytest.param({"cpu": "1"}, {"cpu": "1", "memory": "1"}, False, id="more of another"),
        pytest.param({"cpu": "1"}, {"cpu": "1000m"}, False, id="an equivalent selector"),
        pytest.param(
            {"cpu": "1", "memory": "1"}, {"cpu": "2", "memory": "0"}, True, id="more of one and less of another"
        ),
    ],
)
def test_a_pod_is_scaled_down_if_any_request_shrinks(before: dict[str, str], after: dict[str, str], want: bool) -> None:
    old, new = (make_pod("p").req(requests).obj() for requests in (before, after))
    assert is_scaled_down(old, new) == want


def test_a_completed_resize_scales_a_pod_down_with_an_unchanged_spec() -> None:
    pod = make_pod("p").req(cpu="1").obj()
    name = pod.spec.containers[0].name

    def given(cpu: str) -> ContainerStatus:
        amounts: dict[str, str | int | float] = {"cpu": cpu}
        return ContainerStatus(name=name, resources=ResourceRequirements(requests=amounts), allocated_resources=amounts)

    large, small = (replace(pod, status=replace(pod.status, container_statuses=(given(it),))) for it in ("2", "1"))
    assert is_scaled_down(large, small)
    assert not is_scaled_down(small, large)
    assert not is_scaled_down(pod, pod)
