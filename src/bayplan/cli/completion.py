"""The command ``completion``: print a script that lets a shell complete commands, options and values.

The script calls `bayplan` again for each completion, with the command line in environment variables. So completions
always match the installed version. Typer has the scripts and reads the command line. This module leaves paths to the
shell, which completes file names better.
"""

import os
from enum import StrEnum
from typing import Annotated

import typer
from typer._click.shell_completion import CompletionItem, ShellComplete, add_completion_class, split_arg_string
from typer._completion_classes import BashComplete, FishComplete, ZshComplete
from typer._completion_shared import get_completion_script

from bayplan.cli.main import COMPLETION_VARIABLE


class Shell(StrEnum):
    """The shells that `bayplan` has completion scripts for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


class _WithoutPaths(ShellComplete):
    """Returns no completion where a path is expected, so that the shell completes file names itself."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        return [item for item in super().get_completions(args, incomplete) if item.type == "plain"]


class _Bash(_WithoutPaths, BashComplete):
    pass


class _Zsh(_WithoutPaths, ZshComplete):
    pass


class _Fish(_WithoutPaths, FishComplete):
    pass


def completion(
    shell: Annotated[Shell, typer.Argument(help="Shell that loads the script.", show_default=False)],
) -> None:
    """Print the completion script for a shell.

    bash: source <(bayplan completion bash)

    zsh, after compinit: source <(bayplan completion zsh)

    fish: bayplan completion fish | source

    To load it in every new shell, write it to the completions folder of your shell.

    Example: bayplan completion bash > ~/.local/share/bash-completion/completions/bayplan
    """
    print(get_completion_script(prog_name="bayplan", complete_var=COMPLETION_VARIABLE, shell=shell.value))


def words_to_complete() -> list[str]:
    """Register the shells, and return the words after `bayplan` on the command line that a shell wants to complete."""
    for name, answers in (("bash", _Bash), ("zsh", _Zsh), ("fish", _Fish)):
        add_completion_class(answers, name)
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    return split_arg_string(line)[1:]
