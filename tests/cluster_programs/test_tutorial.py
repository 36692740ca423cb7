"""The tutorial shows what kubectl prints: each command is run again in a new cluster."""

from __future__ import annotations

from pathlib import Path

from tests.cluster_programs.programs import program
from tests.cluster_programs.tutorial import blocks, cluster, comparable, runner, steps


def test_tutorial_commands_print_the_output_shown_in_the_tutorial(tmp_path: Path) -> None:
    program("kubectl")
    with cluster(tmp_path):
        run = runner(tmp_path)
        for block in blocks():
            for command, printed in steps(block):
                assert comparable(run(command)) == comparable(printed), command
