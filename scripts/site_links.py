"""A hook of MkDocs: links to files outside of docs, which work in a checkout, become the paths of these files on the site."""

from __future__ import annotations

import re

_OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+((?!docs/)[^)#\s]+)(?:#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: object, **_: object) -> str:
    """Return a page's text with each link that leaves docs as its text and the path. Links between pages stay links."""
    depth = str(getattr(getattr(page, "file", None), "src_uri", "")).count("/")

    def replaced(found: re.Match[str]) -> str:
        ups = found.group(0).count("../")
        if ups <= depth:
            return found.group(0)
        text, path = found.group(1).strip("`"), found.group(2)
        return f"`{path}`" if path.rstrip("/").endswith(text) else f"{text} (`{path}`)"

    return _OUTSIDE.sub(replaced, markdown)
