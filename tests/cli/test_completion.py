"""`bayplan completion`: shells load its scripts and complete commands, options and values with them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bayplan.cli.main import COMMANDS, main
from tests.missing import installed


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder on PATH that has the program."""
    script = tmp_path / "bin" / "bayplan"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m bayplan "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    return script.parent


def completed_by_bash(*words: str) -> list[str]:
    """Return what bash offers for the last of the words."""
    line = " ".join(f"'{word}'" for word in words)
    code = (
        f"source <(bayplan completion bash); COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}\n"
        f'_bayplan_completion bayplan; printf "%s\\n" "${{COMPREPLY[@]}}"'
    )
    ran = subprocess.run(
        [installed("bash"), "--norc", "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stderr == ""
    return ran.stdout.split()


@pytest.mark.parametrize(
    ("words", "want"),
    [
        pytest.param(["sim"], ["simulate"], id="the beginning of a command"),
        pytest.param([""], [command.name for command in COMMANDS], id="no word"),
        pytest.param(["what-if", "--js"], ["--json"], id="the beginning of an option"),
        pytest.param(["simulate", "--records", ""], ["off", "summary", "full"], id="the value of an option"),
        pytest.param(["store", "check", "clus"], [], id="a file, which bash completes itself"),
        pytest.param(["store", "ch"], ["check"], id="an argument with fixed values"),
        pytest.param(["zzz", "x"], [], id="after a word that is not a command"),
    ],
)
@pytest.mark.usefixtures("program")
def test_bash_completes_commands_options_and_values(words: list[str], want: list[str]) -> None:
    assert completed_by_bash("bayplan", *words) == want


@pytest.mark.parametrize(
    ("shell", "line", "want"),
    [
        pytest.param("zsh", "bayplan simul", '"simulate":"Schedule workloads in virtual time', id="zsh: a command"),
        pytest.param("zsh", "bayplan store check clus", "_files", id="zsh: a file, which zsh completes itself"),
        pytest.param("fish", "bayplan simul", "simulate\tSchedule workloads in virtual time", id="fish: a command"),
        pytest.param("fish", "bayplan simulate --records ", "off\nsummary\nfull", id="fish: the value of an option"),
    ],
)
def test_zsh_and_fish_completions_include_help(
    shell: str, line: str, want: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_BAYPLAN_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    assert main([]) == 0
    assert want in capsys.readouterr().out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.usefixtures("program")
def test_completion_scripts_load_without_output(shell: str) -> None:
    begin = "autoload -U compinit; compinit -D; " if shell == "zsh" else ""
    source = "bayplan completion fish | source" if shell == "fish" else f"source <(bayplan completion {shell})"
    ran = subprocess.run(
        [installed(shell), "-c", begin + source], capture_output=True, text=True, check=True, timeout=60
    )
    assert (ran.stdout, ran.stderr) == ("", "")


def test_a_command_with_a_missing_extra_offers_no_completions(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [
        name for name in sys.modules if name.startswith(("starlette", "bayplan.cli.extender", "bayplan.extender"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "starlette", None)
    monkeypatch.setenv("_BAYPLAN_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "bayplan\nextender\n--")
    monkeypatch.setenv("COMP_CWORD", "2")
    code = main([])
    printed = capsys.readouterr()
    assert (code, printed.out, printed.err) == (1, "", "")
