"""The command ``up``: it prints its address, writes a kubeconfig, and ends on a signal."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from bayplan.apiserver.bridge.bridge import BridgeOptions
from bayplan.apiserver.http.server import ServerOptions
from bayplan.base.clock import Clock
from bayplan.base.errors import InputError
from bayplan.cli.main import main
from bayplan.cli.server_options import DEFAULT_PLUGIN_DEADLINE, DEFAULT_RATE_LIMIT, DEFAULT_SPEED
from bayplan.cli.up import KubeletTimes, event_ttl_ns, kubelet_options
from bayplan.examples import example_path
from bayplan.live.plugin_runner import DEFAULT_DEADLINE_SECONDS
from tests.app.test_simulation import DUMP_WITHOUT_STATUS


def test_up_serves_loaded_objects_until_it_is_interrupted(tmp_path: Path) -> None:
    (tmp_path / "node.yaml").write_text("apiVersion: v1\nkind: Node\nmetadata: {name: node-1}\n")
    command = [sys.executable, "-m", "bayplan", "up", "node.yaml", "--port", "0", "--write-kubeconfig", "config"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "loaded 1 Node\n"
        match = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
        assert match is not None
        with urllib.request.urlopen(f"{match[0]}/api/v1/nodes/node-1") as answer:
            assert answer.status == 200
        assert match[0] in (tmp_path / "config").read_text()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def test_default_limits_and_speed_are_those_of_the_server() -> None:
    assert DEFAULT_PLUGIN_DEADLINE == DEFAULT_DEADLINE_SECONDS
    assert ServerOptions().rate_limit == DEFAULT_RATE_LIMIT
    assert Clock().speed == DEFAULT_SPEED


def test_a_kubeconfig_path_in_a_missing_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["up", "--port", "0", "--write-kubeconfig", str(tmp_path / "no" / "config")]) == 2
    assert "--write-kubeconfig: expected a path in a writable folder" in capsys.readouterr().err


def up(folder: Path, *options: str) -> str:
    """Return the output of ``bayplan up --once``."""
    command = [sys.executable, "-m", "bayplan", "up", *options, "--once", "--port", "0", "--write-kubeconfig", "config"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=120).stdout


def test_up_prints_a_report_of_the_loaded_cluster(tmp_path: Path) -> None:
    path = example_path("three-zones")
    printed = up(tmp_path, str(path))
    assert "loaded 15 Node" in printed
    assert "new pods with restartPolicy Never or OnFailure end after 10s (--run-time)" in printed
    # The number of pods depends on the time of day because of a CronJob.
    assert re.search(r"\d+ of \d+ pods are pending", printed)
    assert "Utilisation: requested and allocatable" in printed


def test_up_prints_which_pods_of_daemon_sets_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "dump.yaml").write_text(DUMP_WITHOUT_STATUS)
    note = (
        "DaemonSet default/agent: its pod is replaced, because without a status the revision of its template is unknown"
    )
    assert note in up(tmp_path, "dump.yaml").splitlines()
    assert note not in up(tmp_path, "dump.yaml", "--no-controllers")


def test_up_once_ends_when_the_reader_of_its_output_has_ended(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bayplan", "up", str(example_path("three-zones")), "--once", "--port", "0"]
    with subprocess.Popen(
        [*command, "--write-kubeconfig", "config"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        while not process.stdout.readline().startswith("new pods"):
            pass
        process.stdout.close()  # Before the report, like head.
        assert process.wait(120) == 0
        assert process.stderr.read() == ""


def test_up_without_a_scheduler_makes_no_decisions(tmp_path: Path) -> None:
    printed = up(tmp_path, str(example_path("three-zones")), "--no-scheduler")
    assert re.search(r"decisions +0\n", printed)


@pytest.mark.parametrize(
    ("options", "want"),
    [
        (["--annotations", "--records", "summary"], "--annotations: expected --records full"),
        (["--retain", "all"], "--retain: expected summaries=N"),
        (["--speed", "0"], "speed of the clock: expected a number above 0"),
        (["--config", "nowhere.yaml"], "nowhere.yaml: expected a configuration file"),
        (["--plugin", "nowhere.py:Class"], "--plugin nowhere.py:Class: expected an existing Python file"),
        (["--feature-gates", "Nothing=true"], "Nothing"),
    ],
)
def test_invalid_up_options_are_refused(
    options: list[str], want: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["up", "--port", "0", "--write-kubeconfig", str(tmp_path / "config"), *options]) == 2
    assert want in capsys.readouterr().err


def test_a_full_disk_is_reported_to_clients_and_on_exit(tmp_path: Path) -> None:
    # Python ignores the signal for exceeding this limit, so that writes fail as on a full disk.
    command = ["sh", "-c", 'ulimit -f 3000; exec "$@"', "sh", sys.executable, "-m", "bayplan", "up", "--port", "0"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [*command, "--store", "store", "--write-kubeconfig", "config"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        match = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
        assert match is not None
        url, acknowledged, body = f"{match[0]}/api/v1/namespaces/default/configmaps", 0, b""
        for number in range(200):
            document = {"metadata": {"name": f"m{number}"}, "data": {"a": "x" * 100_000}}
            request = urllib.request.Request(url, json.dumps(document).encode(), {"Content-Type": "application/json"})
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    answer.read()
                acknowledged += 1
            except urllib.error.HTTPError as problem:
                body = problem.read()
                problem.close()
                break
            except OSError:
                break
        _, printed = process.communicate(timeout=60)
    assert b"the write was not stored" in body
    assert (process.returncode, "Traceback" in printed) == (2, False), printed
    assert "store file of --store: " in printed
    with contextlib.closing(sqlite3.connect(tmp_path / "store")) as store:
        assert store.execute("SELECT count(*) FROM documents WHERE name LIKE 'm%'").fetchone()[0] >= acknowledged > 0


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("90s", "90s", id="a duration"),
        pytest.param("0s", "0s", id="at once"),
        pytest.param("forever", "", id="no end"),
    ],
)
def test_run_time_option_sets_the_default_run_time(text: str, want: str) -> None:
    assert kubelet_options(KubeletTimes(run_time=text)).default_run_time == want


def test_pods_start_and_terminate_after_the_given_times() -> None:
    found = kubelet_options(KubeletTimes(start_delay="1500ms", termination_time="1m"))
    assert (found.start_delay_ns, found.termination_time_ns) == (1_500_000_000, 60_000_000_000)
    assert (kubelet_options(KubeletTimes()).start_delay_ns, kubelet_options(KubeletTimes()).termination_time_ns) == (
        0,
        0,
    )


@pytest.mark.parametrize("option", ["start_delay", "termination_time"])
@pytest.mark.parametrize("text", ["", "soon", "-5s", "10"])
def test_invalid_times_of_pods_are_refused(option: str, text: str) -> None:
    name = "--" + option.replace("_", "-")
    with pytest.raises(InputError, match=f"^{name}: expected a duration, got '{text}'"):
        kubelet_options(KubeletTimes(**{option: text}))


@pytest.mark.parametrize("text", ["", "soon", "-5s", "10"])
def test_an_invalid_run_time_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--run-time: expected a duration or forever, got"):
        kubelet_options(KubeletTimes(run_time=text))


@pytest.mark.parametrize("text", ["", "soon", "-5s", "0s", "10"])
def test_an_event_ttl_must_be_a_positive_duration(text: str) -> None:
    with pytest.raises(InputError, match="--event-ttl: expected a positive duration, got"):
        event_ttl_ns(text)


def test_event_ttl_defaults_to_one_hour() -> None:
    assert event_ttl_ns("90s") == 90_000_000_000
    assert event_ttl_ns("1h") == BridgeOptions().event_ttl_ns
