"""The command ``test``: run scenario files and check their assertions."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from bayplan.app.scenario_runs import ScenarioOptions, run_scenarios
from bayplan.base.errors import InputError
from bayplan.base.output_paths import check_output_file
from bayplan.scenarios.results import junit_xml, result_lines


def test(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="SCENARIO...", help="Scenario files, folders or patterns.", show_default=False),
    ],
    only: Annotated[
        str, typer.Option(metavar="TEXT", help="Run only scenarios whose name contains TEXT. [default: all]")
    ] = "",
    label: Annotated[
        str, typer.Option(metavar="LABEL", help="Run only scheduler_perf workloads with this label. [default: all]")
    ] = "",
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File for the results as JUnit XML. [default: none]")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Seed for all scenarios. [default: as in each scenario]")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Check the simulator's own consistency after every event (slow).")
    ] = False,
) -> None:
    """Run scenario files in virtual time and check their assertions.

    A scenario changes a cluster step by step (create, scale, drain, fail a zone, ...) and asserts the outcome. All files are
    checked before the first scenario runs. For each failed assertion, the expected and actual
    values are printed, and the reasons why pods are pending.

    Files: Bayplan's own format (docs/scenarios.md), Scenario objects of kube-scheduler-simulator (KEP-140), and configurations
    of scheduler_perf.

    Exit code: 0 if all assertions hold, 1 if one does not, 2 on bad input.

    Example: bayplan test scenarios/*.yaml --junit results.xml
    """
    if junit is not None:
        check_output_file(junit, "--junit")
    results = list(run_scenarios(ScenarioOptions(paths=paths, only=only, label=label, seed=seed, check=check)))
    if not results:
        got = " and ".join(f"'{each}'" for each in (only, label) if each)
        raise InputError("--only or --label", got=got, wanted="the name or label of a scenario in the files")
    if junit is not None:
        junit.write_bytes(junit_xml(results))
    sys.stdout.write("\n".join(result_lines(results)) + "\n")
    if not all(result.passed for result in results):
        raise typer.Exit(1)
