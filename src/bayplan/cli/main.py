"""The program `bayplan`: finds the verb, runs it, and turns what goes wrong into one line and an exit code.

One file a verb. The verb ``simulate`` is the function ``simulate`` in the module ``bayplan.cli.simulate``, annotated
as Typer wants it; its docstring is its help, and the first sentence of that docstring is also the line in `VERBS`
below. To add a verb, write that file and add that line; nothing else has to know. A dash in a verb is an underscore
in the names of its module and function; a verb that is a word of Python has one behind it.

Only the verb that was asked for is imported, so `bayplan --help` loads neither NumPy nor a server, and a verb's
module may import at its top whatever it needs. The other verbs are listed from `VERBS`.

Exit codes: 0 is success, 1 is an answer that scripts want to see as a failure (a verb raises ``typer.Exit(1)``; see
its help), 2 is bad input: a wrong option, or any `bayplan.base.errors.InputError`, which a verb simply lets pass. A
traceback is a bug of Bayplan.
"""

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from keyword import iskeyword
from typing import Annotated, NamedTuple

import typer

from bayplan.base.errors import InputError
from bayplan.base.garbage_collector import end_collections, rare_collections
from bayplan.base.version import KUBERNETES_VERSION, __version__


class Verb(NamedTuple):
    """A verb of the command line: its name, and the line that `bayplan --help` shows for it."""

    name: str
    summary: str


VERBS = (
    Verb("simulate", "Schedule workloads on a cluster in virtual time, and report."),
    Verb("explain", "Show why a pod was placed where it is, or why it waits."),
    Verb("config", "Check a scheduler configuration, or convert an older one."),
    Verb("conformance", "Compare our answers with recorded answers of a real scheduler."),
    Verb("up", "Run a cluster without machines, for kubectl and schedulers."),
    Verb("import", "Bring what is in a cluster or in files into a running Bayplan."),
    Verb("sync", "Follow a cluster: its changes come to a running Bayplan."),
    Verb("record", "Record what happens in a cluster to a file."),
    Verb("replay", "Replay a recording into a running Bayplan, with its timestamps."),
    Verb("schedule", "Schedule the pods of a cluster, or check its scheduler."),
    Verb("extender", "Serve plugins as an HTTP extender for a stock kube-scheduler."),
    Verb("store", "Check the file of a cluster, or repair it into a new one."),
    Verb("example", "Print where the bundled example lies, or copy it."),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code.

    Args:
        arguments: what stands after the program's name; the process's own arguments when None.

    Called by the console script and by tests. Writes to standard output and standard error.
    """
    # No linear algebra here: the threads that NumPy's would start, and let spin for 60 ms, would have nothing to do.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        with rare_collections():
            code = _run(sys.argv[1:] if arguments is None else list(arguments))
            if arguments is None:
                end_collections()
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output (head, less) has gone; what is still buffered must not raise again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


def _run(words: list[str]) -> int:
    try:
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


def build_app(words: Sequence[str]) -> typer.Typer:
    """Build the Typer application for these arguments: the verb they name in full, the others by name and summary only.

    Raises:
        InputError: the first word that is not an option names no verb.
    """
    app = typer.Typer(
        name="bayplan",
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback(invoke_without_command=True)(_root)
    # The options of the program itself take no values, so the first word without a dash is the verb.
    wanted = next((word for word in words if not word.startswith("-")), None)
    if wanted is not None and wanted not in {verb.name for verb in VERBS}:
        raise _unknown_verb(wanted)
    for verb in VERBS:
        if verb.name == wanted:
            app.command(verb.name)(load(verb.name))
        else:
            app.command(verb.name, short_help=verb.summary)(_listed_only)
    return app


def load(name: str) -> Callable[..., None]:
    """Import the module of a verb and return its function, which Typer turns into a command."""
    attribute = name.replace("-", "_")
    if iskeyword(attribute):
        attribute += "_"
    function: Callable[..., None] = getattr(importlib.import_module(f"bayplan.cli.{attribute}"), attribute)
    return function


def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False,
) -> None:
    """Take kube-scheduler's decisions in virtual time, and explain them."""
    if version:
        typer.echo(f"bayplan {__version__} (decides as kube-scheduler {KUBERNETES_VERSION})")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _listed_only() -> None:
    """Stand for a verb that was not asked for; never runs."""


def _unknown_verb(word: str) -> InputError:
    from difflib import get_close_matches  # Only a typing error needs it.

    names = [verb.name for verb in VERBS]
    close = get_close_matches(word, names, n=1, cutoff=0.5)
    return InputError(
        "verb",
        got=f"'{word}'",
        wanted=f"one of {', '.join(names)}",
        hint=f"'{close[0]}'" if close else "bayplan --help",
    )


def _refuse(message: str) -> int:
    print(f"bayplan: {message}", file=sys.stderr)
    return 2
