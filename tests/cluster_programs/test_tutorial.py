"""The tutorial shows what kubectl prints: each command is run again in a new cluster."""

from __future__ import annotations

from pathlib import Path

from tests.cluster_programs.programs import program
from tests.cluster_programs.tutorial import blocks, cluster, comparable, runner, steps


def test_every_command_prints_what_stands_there(tmp_path: Path) -> None:
    program("kubectl")
    with cluster(tmp_path):
        run = runner(tmp_path)
        for block in blocks():
            for command, printed in steps(block):
                assert comparable(run(command)) == comparable(printed), command
