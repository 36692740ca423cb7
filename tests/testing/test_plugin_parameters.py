"""The conformance kit reports a method with wrong parameters as `Cluster` does, not as an exception on a sample cluster."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan import Cluster, PerNodePlugin
from bayplan.base.errors import PluginError
from bayplan.framework.plugin import Plugin, ScorePlugin
from bayplan.testing import PluginFault, check_plugin


class CompilesPod(ScorePlugin[Any]):
    def compile(self, pod: Any) -> Any:  # type: ignore[override]
        return None

    def score(self, spec: Any, params: Any, rows: Any) -> Any:
        return None


class ScoresRows(ScorePlugin[Any]):
    def compile(self, pod: Any, cluster: Any) -> Any:
        return None

    def score(self, spec: Any, rows: Any) -> Any:  # type: ignore[override]
        return None


class SignsNothing(PerNodePlugin):
    def filter_node(self, pod: Any, node: Any) -> None:
        return None

    def sign_pod(self) -> Any:  # type: ignore[override]
        return None


@pytest.mark.parametrize(
    ("plugin", "want"),
    [
        pytest.param(CompilesPod, "expected compile(self, pod, cluster), got compile(self, pod)", id="compile"),
        pytest.param(ScoresRows, "expected score(self, spec, params, rows), got score(self, spec, rows)", id="score"),
        pytest.param(SignsNothing, "expected sign_pod(self, pod), got sign_pod(self)", id="sign_pod"),
    ],
)
def test_wrong_parameters_have_one_message(plugin: type[Plugin[Any]], want: str) -> None:
    text = f"plugin {plugin.__name__}: {want}"
    with pytest.raises(PluginFault) as fault:
        check_plugin(plugin)
    assert str(fault.value) == text
    with pytest.raises(PluginError) as refused:
        Cluster(plugins=[plugin])
    assert str(refused.value) == text
