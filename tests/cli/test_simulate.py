"""The command ``simulate``, end to end."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.base.durations import DAY_NS
from bayplan.base.errors import InputError
from bayplan.cli.main import main
from bayplan.cli.simulation_options import parse_duration
from bayplan.examples import example_path

SECOND = 1_000_000_000
NODE = (
    "{apiVersion: v1, kind: Node, metadata: {name: node}, status: {allocatable: {cpu: '4', memory: 8Gi, pods: '9'}}}\n"
)
POD = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cluster.yaml").write_text(f"{NODE}---\n{POD}")
    return tmp_path


def test_simulate_prints_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", str(example_path()), "--until", "2h", "--seed", "3"]) == 0
    printed = capsys.readouterr()
    assert "seed 3" in printed.out
    assert "0/15 nodes are available" in printed.out
    assert printed.err == ""


def test_repeated_runs_print_the_same_output_except_wall_times(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", str(folder)]) == 0
    first = capsys.readouterr().out
    assert main(["simulate", str(folder)]) == 0
    second = capsys.readouterr().out
    assert _without_clock(first) == _without_clock(second)


def _without_clock(text: str) -> list[str]:
    return [line.split(";")[0] for line in text.splitlines()]


@pytest.mark.parametrize("arguments", [[], ["--records", "summary"], ["--records", "off"]], ids=" ".join)
def test_results_are_written_at_every_record_level(
    folder: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    out = folder / "result"
    assert main(["simulate", str(folder / "cluster.yaml"), "--out", str(out), *arguments]) == 0
    assert any(out.iterdir())
    assert "seed 0" in capsys.readouterr().out


def test_the_result_is_written_even_if_the_report_can_not_be_printed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(*_: object) -> int:
        raise BrokenPipeError

    monkeypatch.setattr("sys.stdout.write", closed)
    out = folder / "result"
    main(["simulate", str(folder / "cluster.yaml"), "--out", str(out)])
    assert (out / "summary.json").exists()


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        pytest.param(["{folder}/none.yaml"], "none.yaml: no such file or folder", id="a path that does not exist"),
        pytest.param(["{folder}/broken.yaml"], "broken.yaml:", id="broken YAML"),
        pytest.param(["{folder}", "--config", "{folder}/none"], "expected a configuration file", id="no configuration"),
        pytest.param(
            ["{folder}", "--config", "{folder}/cluster.yaml"], "cluster.yaml", id="no such configuration kind"
        ),
        pytest.param(["{folder}", "--feature-gates", "No=true"], "unrecognized feature gate: No", id="an unknown gate"),
        pytest.param(
            ["{folder}", "--descheduling-interval", "5m"],
            "--descheduling-interval: expected a policy of the descheduler, got none; try --descheduler FILE",
            id="an interval without a descheduler",
        ),
        pytest.param(["{folder}", "--until", "soon"], "--until: expected a duration, got 'soon'", id="no duration"),
        pytest.param(["{folder}", "--plugin", "Nothing"], "got an unknown name", id="an unknown plugin"),
        pytest.param(["{folder}", "--out", "{folder}/cluster.yaml"], "cluster.yaml", id="a file as output folder"),
        pytest.param(["{folder}/odd.yaml", "--strict"], "odd.yaml:1", id="an unknown field, strictly"),
    ],
)
def test_invalid_input_exits_with_code_2_and_writes_nothing(
    folder: Path, arguments: list[str], want: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if any("broken" in each for each in arguments):
        (folder / "broken.yaml").write_text("kind: [")
    if any("odd" in each for each in arguments):
        (folder / "odd.yaml").write_text(POD.replace("image: i", "imag: i"))
    before = sorted(folder.iterdir())
    assert main(["simulate", *(each.format(folder=folder) for each in arguments)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert want in printed.err
    assert "Traceback" not in printed.err
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("90s", 90 * SECOND),
        ("1h30m", 5400 * SECOND),
        ("7d", 7 * DAY_NS),
        ("1d12h", DAY_NS + DAY_NS // 2),
        ("0", 0),
        ("1ns", 1),
    ],
)
def test_durations_are_parsed(text: str, want: int) -> None:
    assert parse_duration(text) == want


@pytest.mark.parametrize("text", ["-1s", "5", "d", "1d2", "xd", "1w", "--1d", "1d-25h"])
def test_invalid_durations_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="expected a duration"):
        parse_duration(text)


@pytest.mark.parametrize("option", ["--start-delay", "--termination-time"])
def test_times_of_pods_must_be_durations(option: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", str(folder), option, "1s"]) == 0
    capsys.readouterr()
    assert main(["simulate", str(folder), option, "soon"]) == 2
    assert f"{option}: expected a duration, got 'soon'" in capsys.readouterr().err
