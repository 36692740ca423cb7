"""Amounts that no cluster can have: refused like by kube-apiserver, or reported with the amount that counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.base.errors import InputError
from bayplan.formats import amounts
from bayplan.formats.amounts import quantity_hint
from bayplan.formats.inputs import load_inputs

POD = (
    "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: c\n    image: i\n    resources:\n"
)
NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: node-1}\nstatus:\n"
TEMPLATE = (
    "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: j}\nspec:\n  schedule: '@daily'\n  jobTemplate:\n    spec:\n"
    "      template:\n        spec:\n          containers:\n          - resources: {requests: {cpu: '-1'}}\n"
)


def test_checked_amounts_are_cached(tmp_path: Path) -> None:
    pod = POD + "      limits: {cpu: 1234m}\n      requests: {cpu: 1233m}\n"
    text = "---\n".join(pod.replace("name: p", f"name: p{number}") for number in range(10))
    before = [each.cache_info() for each in (amounts._odd, amounts._exceeds)]
    assert reported(text, tmp_path) == []
    after = [each.cache_info() for each in (amounts._odd, amounts._exceeds)]
    found = [(now.misses - then.misses, now.hits - then.hits) for now, then in zip(after, before, strict=True)]
    assert found == [(2, 18), (1, 9)]


def reported(text: str, folder: Path, *, strict: bool = False) -> list[str]:
    file = folder / "f.yaml"
    file.write_text(text)
    return [str(each).replace(str(file), "f") for each in load_inputs([str(file)], strict=strict).manifest.warnings]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(
            POD + "      requests: {cpu: -1}\n",
            "f:9 Pod p $.spec.containers[0].resources.requests.cpu: expected an amount of at least 0, got '-1'",
            id="a negative request",
        ),
        pytest.param(
            TEMPLATE,
            "f:11 CronJob j $.spec.jobTemplate.spec.template.spec.containers[0].resources.requests.cpu: "
            "expected an amount of at least 0, got '-1'",
            id="a negative request of the pods that a CronJob makes",
        ),
        pytest.param(
            POD + "      limits: {example.com/gpu: 500m}\n",
            "f:9 Pod p $.spec.containers[0].resources.limits.example.com/gpu: expected a whole number, got '500m'",
            id="half a device",
        ),
        pytest.param(
            POD + "      limits: {cpu: 1}\n      requests: {cpu: 1500m}\n",
            "f:10 Pod p $.spec.containers[0].resources.requests.cpu: expected an amount of at most the limit, 1, got '1500m'",
            id="a request above its limit",
        ),
        pytest.param(
            NODE + "  allocatable: {memory: -5Gi}\n",
            "f:5 Node node-1 $.status.allocatable.memory: expected an amount of at least 0, got '-5Gi'",
            id="a node with negative capacity",
        ),
        pytest.param(
            POD + "      requests: {memory: 64gb}\n",
            "f:9 Pod p $.spec.containers[0].resources.requests.memory: expected a quantity, got '64gb'; try '64G'",
            id="an invalid quantity, with a suggestion",
        ),
    ],
)
def test_invalid_amounts_are_refused_with_their_line(text: str, want: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        reported(text, tmp_path)
    assert str(refused.value).replace(str(tmp_path / "f.yaml"), "f") == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(
            POD + "      requests: {cpu: 1500m, memory: 1.5Gi}\n      limits: {cpu: 1.5}\n", [], id="good ones"
        ),
        pytest.param(POD + "      requests: {cpu: 9P, memory: 7Ei}\n", [], id="as much as an int64 holds"),
        pytest.param(
            POD + "      requests: {cpu: 99999999999999999999}\n",
            [
                "f:9 Pod p $.spec.containers[0].resources.requests.cpu: 99999999999999999999 is greater than the largest int64; "
                "kube-scheduler counts it as 200376420520689664m"
            ],
            id="CPU beyond int64",
        ),
        pytest.param(
            POD + "      requests: {memory: 9Ei}\n",
            [
                "f:9 Pod p $.spec.containers[0].resources.requests.memory: 9Ei is greater than the largest int64; "
                "kube-scheduler counts it as 9223372036854775807"
            ],
            id="memory beyond int64, which is capped",
        ),
        pytest.param(
            POD + "      requests: {memory: 512m}\n",
            ["f:9 Pod p $.spec.containers[0].resources.requests.memory: 512m is a fraction of a byte; counted as 1"],
            id="milli-bytes",
        ),
        pytest.param(NODE + "  allocatable: {memory: 7500m}\n", [], id="a node may report fractions"),
    ],
)
def test_unusual_amounts_return_warnings_and_are_refused_in_strict_mode(
    text: str, want: list[str], tmp_path: Path
) -> None:
    assert reported(text, tmp_path) == want
    if want:
        with pytest.raises(InputError, match="refused because of --strict"):
            reported(text, tmp_path, strict=True)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("64gb", "64G"),
        ("64 GiB", "64Gi"),
        ("512mb", "512M"),
        ("1.5gi", "1.5Gi"),
        ("2 cores", "2"),
        ("4 vCPU", "4"),
        ("10kb", "10k"),
        ("128 b", "128"),
        ("8 apples", ""),
        ("many", ""),
        ("", ""),
    ],
)
def test_quantity_hint_suggests_a_valid_quantity(text: str, want: str) -> None:
    assert quantity_hint(text) == want


@pytest.mark.parametrize(
    ("text", "is_cpu", "want"),
    [
        pytest.param("3920 m", True, "3920m", id="thousandths of a core"),
        pytest.param("4 M", True, "4M", id="a capital letter"),
        pytest.param("2 cores", True, "2", id="cores"),
        pytest.param("512 m", False, "512M", id="megabytes"),
    ],
)
def test_the_suggestion_for_m_depends_on_the_resource(text: str, is_cpu: bool, want: str) -> None:
    assert quantity_hint(text, is_cpu=is_cpu) == want
