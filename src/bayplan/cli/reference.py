"""Write the command line reference from the program's own help: ``python -m bayplan.cli.reference docs/cli.md``."""

import io
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path

from bayplan.cli.main import COMMANDS, main

WIDTH = 100
"""Columns of the help as printed in the reference."""

HEAD = """# Command line

<!-- Written by `make docs-cli` from the program's own help; don't edit. -->

All commands with their options, as `--help` prints them. Exit codes: 0 is success, 1 is a result that scripts
should see as a failure (see each command), 2 is bad input, with a message on standard error ([messages.md](messages.md)).
"""


def reference() -> str:
    """Return the reference as Markdown: the help of the program, then that of every command."""
    sections = [HEAD, _section("bayplan", ["--help"])]
    sections += [_section(f"bayplan {command.name}", [command.name, "--help"]) for command in COMMANDS]
    return "\n".join(sections)


def _section(title: str, arguments: Sequence[str]) -> str:
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(WIDTH)
    try:
        with redirect_stdout(io.StringIO()) as printed:
            main(arguments)
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
    text = "\n".join(line.rstrip() for line in printed.getvalue().strip().splitlines())
    return f"## {title}\n\n```text\n{text}\n```\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference(), encoding="utf-8")
