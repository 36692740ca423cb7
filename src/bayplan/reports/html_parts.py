"""Parts of the report as HTML: sections with a chart, tables, and table cells with confidence intervals."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence

import numpy as np

from bayplan.reports.charts import Figure
from bayplan.reports.intervals import mean_and_margin


def chart_section(name: str, title: str, text: str, figure: Figure) -> str:
    """Return a section: a heading, a sentence ("" for none) and a chart. `name` is the ID of the chart's element."""
    data = json.dumps(figure, allow_nan=False, separators=(",", ":")).replace("</", "<\\/")
    note = f"<p>{html.escape(text)}</p>" if text else ""
    return (
        f'<h2>{html.escape(title)}</h2>{note}<div class="chart" id="{name}" data-figure="{name}-data"></div>'
        f'<script type="application/json" id="{name}-data">{data}</script>'
    )


def table(name: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts that scrolls sideways if it is too wide. `name` is the ID of its element."""
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="scroll"><table id="{name}"><tr>{head}</tr>{body}</table></div>'


def cell(found: Sequence[float | None]) -> str:
    """Format the mean over runs with its confidence interval; "none" if any run lacks the number."""
    samples = np.array([[np.nan if each is None else float(each)] for each in found])
    if np.isnan(samples).any():
        return "none"
    mean, margin = mean_and_margin(samples)
    text = f"{mean[0]:,.0f}" if mean[0] == int(mean[0]) and not margin[0] else f"{mean[0]:,.1f}"
    return text if len(samples) < 2 or not margin[0] else f"{text} ± {margin[0]:,.1f}"
