"""The program `bayplan`: runs one command, and turns bad input into one message and an exit code.

Each command has one file. The command ``simulate`` is the function ``simulate`` in the module ``bayplan.cli.simulate``,
annotated for Typer. Its docstring is its help, and the first sentence of that docstring is also its line in `COMMANDS`
below. To add a command, write that file and add that line. A dash in the name of a command is an underscore in the
names of its module and function; if the name is a Python keyword, an underscore is appended.

Only the module of the given command is imported, so `bayplan --help` loads neither NumPy nor a server, and the module
may import whatever it needs at its top. The other commands are listed from `COMMANDS`.

Exit codes: 0 is success. 1 is a result that scripts should treat as a failure (a command raises ``typer.Exit(1)``; see
its help). 2 is bad input: a wrong option, or any `bayplan.base.errors.InputError`, which commands do not catch. A
traceback is a bug of Bayplan.
"""

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from itertools import groupby
from keyword import iskeyword
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from typer.core import TyperGroup

from bayplan.base.build import build_name
from bayplan.base.errors import InputError
from bayplan.base.extras import named_extras
from bayplan.base.garbage_collector import end_collections, rare_collections
from bayplan.base.version import KUBERNETES_VERSION, __version__

if TYPE_CHECKING:
    from typer._click.core import Context
    from typer._click.formatting import HelpFormatter


class Command(NamedTuple):
    """A command: its name, the line that `bayplan --help` shows for it, and the heading above that line."""

    name: str
    summary: str
    group: str


_SIMULATE, _SERVE, _REAL, _TOOLS = "Simulate and explain", "Serve", "Real clusters", "Tools"

COMMANDS = (
    Command("simulate", "Schedule workloads in virtual time and print a report.", _SIMULATE),
    Command("explain", "Show why a pod is pending, or why it got its node.", _SIMULATE),
    Command("waiting", "Show why pods are pending, grouped by reason.", _SIMULATE),
    Command("unblock", "Show changes that get a pending pod placed.", _SIMULATE),
    Command("capacity", "Show how many more copies of a workload fit.", _SIMULATE),
    Command("nodes", "Show which nodes to add, or which can be removed.", _SIMULATE),
    Command("what-if", "Show a cluster before and after changes.", _SIMULATE),
    Command("when", "Show when a pending pod or a Job would start.", _SIMULATE),
    Command("compare", "Compare two clusters, or two configurations.", _SIMULATE),
    Command("test", "Run scenario files in virtual time and check their assertions.", _SIMULATE),
    Command("sweep", "Simulate many configurations and print the best ones.", _SIMULATE),
    Command("report", "Write an HTML report with charts of one or several runs.", _SIMULATE),
    Command("up", "Run a cluster without machines: API, scheduler, web page.", _SERVE),
    Command("extender", "Serve plugins as an HTTP extender for a stock kube-scheduler.", _SERVE),
    Command("import", "Copy a cluster, or files, into a Bayplan server.", _REAL),
    Command("sync", "Keep a Bayplan server in sync with a cluster.", _REAL),
    Command("record", "Record the changes of a cluster to a file.", _REAL),
    Command("replay", "Replay a recording into a Bayplan server.", _REAL),
    Command("schedule", "Schedule the pods of a real cluster, or check its scheduler.", _REAL),
    Command("check", "Check manifests as kubectl apply --dry-run=server does.", _TOOLS),
    Command("config", "Check a scheduler configuration, or convert an older one.", _TOOLS),
    Command("conformance", "Compare Bayplan's answers with recordings of kube-scheduler.", _TOOLS),
    Command("store", "Check the database file of a cluster, or repair it.", _TOOLS),
    Command("example", "Print the path of the bundled example, or copy it.", _TOOLS),
    Command("completion", "Print the completion script for a shell.", _TOOLS),
)

COMPLETION_VARIABLE = "_BAYPLAN_COMPLETE"
"""Environment variable with which the script of `bayplan completion` requests completions."""


class CommandGroup(TyperGroup):
    """Lists the commands in the program's help under the headings of `COMMANDS`."""

    def format_commands(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        """Write a section for each heading, all with the same indentation."""
        width = max(len(command.name) for command in COMMANDS)
        for heading, commands in groupby(COMMANDS, key=lambda command: command.group):
            with formatter.section(heading):
                formatter.write_dl([(command.name.ljust(width), command.summary) for command in commands])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code.

    Args:
        arguments: the arguments after the program's name; None for those of the process.

    Called by the console script and by tests. Writes to standard output and standard error.
    """
    # Bayplan uses no linear algebra, so NumPy's threads, which spin for 60 ms after their start, would do nothing.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        with rare_collections():
            code = _run(sys.argv[1:] if arguments is None else list(arguments))
            if arguments is None:
                end_collections()
        sys.stdout.flush()
    except BrokenPipeError:
        from bayplan.base.standard_output import discard_output

        discard_output()
        return 0
    return code


def _run(words: list[str]) -> int:
    if COMPLETION_VARIABLE in os.environ:
        return _complete()
    try:
        with named_extras():
            build_app(words)(args=words, prog_name="bayplan")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except InputError as error:
        return _refuse(str(error))
    except OSError as error:
        if error.filename is None:
            raise
        return _refuse(f"{error.filename}: {error.strerror}")
    return 0


def _complete() -> int:
    """Print the completions for a shell's command line; none if the command needs an extra that is not installed."""
    from bayplan.cli.completion import words_to_complete  # Only a shell needs this module.

    words = words_to_complete()
    given = command_of(words)
    try:
        with named_extras():
            build_app(words if given in {command.name for command in COMMANDS} else [])(prog_name="bayplan")
    except SystemExit as ended:
        return int(ended.code or 0)
    except InputError:
        return 1
    return 0


def build_app(words: Sequence[str]) -> typer.Typer:
    """Build the Typer application for these arguments: the named command in full, the others by name and summary only.

    Raises:
        InputError: the first word that is not an option is not a command.
    """
    app = typer.Typer(
        name="bayplan",
        cls=CommandGroup,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback(invoke_without_command=True)(_root)
    given = command_of(words)
    if given is not None and given not in {command.name for command in COMMANDS}:
        raise _unknown_command(given)
    for command in COMMANDS:
        if command.name == given:
            app.command(command.name)(load(command.name))
        else:
            app.command(command.name, short_help=command.summary)(_listed_only)
    return app


def command_of(words: Sequence[str]) -> str | None:
    """Return the first word that is not an option, or None; the program's own options take no values."""
    return next((word for word in words if not word.startswith("-")), None)


def load(name: str) -> Callable[..., None]:
    """Import the module of a command and return its function."""
    attribute = name.replace("-", "_")
    if iskeyword(attribute):
        attribute += "_"
    function: Callable[..., None] = getattr(importlib.import_module(f"bayplan.cli.{attribute}"), attribute)
    return function


def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Make kube-scheduler's decisions without a cluster, and explain them.

    Start with: bayplan simulate $(bayplan example)
    """
    if version:
        typer.echo(f"bayplan {__version__} (decides as kube-scheduler {KUBERNETES_VERSION}), {build_name()}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _listed_only() -> None:
    """Do nothing: a placeholder for commands that were not given; only their names and summaries are listed."""


def _unknown_command(word: str) -> InputError:
    from bayplan.base.near_names import near_name  # Only a typing error needs this module.

    names = [command.name for command in COMMANDS]
    close = near_name(word, names)
    return InputError(
        "command",
        got=f"'{word}'",
        wanted=f"one of {', '.join(names)}",
        hint=f"'{close}'" if close else "bayplan --help",
    )


def _refuse(message: str) -> int:
    print(f"bayplan: {message}", file=sys.stderr)
    return 2
