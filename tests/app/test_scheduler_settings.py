"""Settings of a server's scheduler."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.app.scheduler_settings import SchedulerOptions, read_settings
from bayplan.app.scheduler_setup import read_setup
from bayplan.base.errors import ConfigurationError
from bayplan.live.plugin_runner import PluginRunner


def test_an_empty_configuration_file_is_refused_by_servers_and_simulations(tmp_path: Path) -> None:
    path = tmp_path / "empty.yaml"
    path.touch()
    with pytest.raises(ConfigurationError, match="Object 'Kind' is missing"):
        read_setup(config=path)
    runner = PluginRunner(1.0, now_ns=lambda: 0)
    try:
        with pytest.raises(ConfigurationError, match="Object 'Kind' is missing"):
            read_settings(SchedulerOptions(config=path), runner)
    finally:
        runner.close()
