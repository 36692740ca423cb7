"""The command ``report``: an HTML file with charts of one or several runs."""

from pathlib import Path
from typing import Annotated

import typer

from bayplan.base.extras import named_extras
from bayplan.base.output_paths import check_output_folder


def report(
    results: Annotated[
        list[str],
        typer.Argument(
            metavar="[LABEL=]DIR...", help="Result directories; those with the same label are runs of different seeds."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="HTML file to write.")] = Path("report.html"),
    title: Annotated[str, typer.Option(metavar="TEXT", help="Title of the page.")] = "Bayplan report",
) -> None:
    """Write an HTML report with charts of one or several runs.

    The file is self-contained. It shows utilisation, waiting times, queue length, idle amounts without room for typical pods,
    rejections, nodes, pods and cost; for several seeds with 95 % confidence intervals.

    Example: bayplan report default=out/a1 default=out/a2 packed=out/b1 packed=out/b2
    """
    with named_extras():
        from bayplan.reports.page import read_runs, report_page

    check_output_folder(out.resolve().parent, "--out")
    out.write_text(report_page(read_runs(results), title=title), encoding="utf-8")
    typer.echo(f"{out} ({out.stat().st_size / 1e6:.1f} MB)")
