"""HTML tables for notebooks, without scripts or styles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MAX_ROWS = 60
"""Maximum number of rows, to keep notebooks readable; further rows are only counted."""


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], *, caption: str = "") -> str:
    """Return an HTML table with at most `MAX_ROWS` rows."""
    import html  # Only notebooks need it.

    cells = [tuple(str(cell) for cell in row) for row in rows]
    head = "".join(f"<th>{html.escape(each)}</th>" for each in heads)
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in cells[:MAX_ROWS])
    more = f"<p>and {len(cells) - MAX_ROWS:,} more</p>" if len(cells) > MAX_ROWS else ""
    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
