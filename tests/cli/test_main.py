"""The program: its commands, lazy imports, and exit codes."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

import bayplan.cli.main as program
from bayplan.base.build import build_name
from bayplan.base.errors import InputError
from bayplan.base.version import KUBERNETES_VERSION, __version__
from bayplan.cli.main import COMMANDS, Command, load, main
from bayplan.examples import example_path
from bayplan.formats import yaml_fast

HEAVY = (
    "numpy",
    "pyarrow",
    "rich",
    "yaml",
    "msgspec",
    "asyncio",
    "http.server",
    "uvicorn",
    "bayplan.engine",
    "bayplan.app",
    "bayplan.sim",
)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], []], ids=["--help", "--version", "nothing"])
def test_help_and_version_import_no_engine(arguments: list[str]) -> None:
    code = f"from bayplan.cli.main import main; import sys; main({arguments}); print('loaded', *sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    loaded = set(out.rpartition("loaded ")[2].split())
    assert not loaded & {*HEAVY, *(f"bayplan.cli.{command.name}" for command in COMMANDS)}


RARELY_NEEDED = (
    "yaml",
    "numpy.random",
    "logging",
    "zoneinfo",
    "html",
    "importlib.resources",
    "bayplan.answers",
    "bayplan.autoscaling",
    "bayplan.descheduling.policy",
    "bayplan.formats.traces",
)


def test_simulate_imports_nothing_that_the_example_does_not_need() -> None:
    run = f"assert main(['simulate', {str(example_path())!r}]) == 0"
    code = f"from bayplan.cli.main import main; import sys; {run}; print('loaded', *sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    by_rich = subprocess.run(
        [sys.executable, "-c", "import rich.console, sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    # Older releases of rich load more modules themselves.
    loaded = set(out.rpartition("loaded ")[2].split()).intersection(RARELY_NEEDED) - set(by_rich.stdout.split())
    # Without ryaml, PyYAML reads all manifests.
    assert loaded == (set() if yaml_fast.IS_INSTALLED else {"yaml"})


def test_help_lists_every_command_with_its_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"  {command.name}" in out and command.summary in out for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS, ids=[command.name for command in COMMANDS])
def test_the_docstring_of_each_command_starts_with_its_summary(command: Command) -> None:
    assert (load(command.name).__doc__ or "").splitlines()[0] == command.summary


@pytest.mark.parametrize("command", COMMANDS, ids=[command.name for command in COMMANDS])
def test_each_command_has_help(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command.name, "--help"]) == 0
    assert f"Usage: bayplan {command.name}" in capsys.readouterr().out


def test_version_shows_the_kubernetes_release_and_the_build(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    text = f"bayplan {__version__} (decides as kube-scheduler {KUBERNETES_VERSION}), {build_name()}\n"
    assert capsys.readouterr().out == text


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        (["simulat"], "got 'simulat'; try 'simulate'"),
        (["zzz"], "got 'zzz'; try bayplan --help"),
        (["--bogus"], "No such option: --bogus"),
        (["conformance", "--shw", "1"], "No such option: --shw"),
    ],
    ids=["a misspelt command", "no command at all", "an unknown option", "an unknown option of a command"],
)
def test_unknown_commands_and_options_exit_with_code_2_and_a_suggestion(
    arguments: list[str], want: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert want in capsys.readouterr().err


def _command_that(does: Callable[[], None]) -> Callable[[str], Callable[..., None]]:
    def verb() -> None:
        """Do it."""
        does()

    return lambda name: verb


def _raises(error: Exception) -> Callable[[], None]:
    def do() -> None:
        raise error

    return do


@pytest.mark.parametrize(
    ("error", "want"),
    [
        (
            InputError("image", where="a.yaml:3", got="5", wanted="text"),
            "bayplan: a.yaml:3 image: expected text, got 5\n",
        ),
        (FileNotFoundError(2, "No such file or directory", "/x/y"), "bayplan: /x/y: No such file or directory\n"),
    ],
    ids=["bad input", "a path that is not there"],
)
def test_user_errors_exit_with_code_2_and_one_line(
    error: Exception, want: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "load", _command_that(_raises(error)))
    assert main(["simulate"]) == 2
    assert capsys.readouterr().err == want


def test_an_unexpected_exception_is_not_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "load", _command_that(_raises(ZeroDivisionError("a bug"))))
    with pytest.raises(ZeroDivisionError):
        main(["simulate"])


@pytest.mark.parametrize("words", [["--help"], ["conformance", "--help"]], ids=["of the program", "of a command"])
def test_a_closed_output_pipe_causes_no_error(words: list[str]) -> None:
    code = f"from bayplan.cli.main import main; import sys; sys.exit(main({words}))"
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run([sys.executable, "-c", code], stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert ended.stderr == ""
