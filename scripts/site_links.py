"""A hook of MkDocs that converts links for a checkout to links for the site.

Links to files outside of docs become the paths of these files. Links named after a page's file get the page's title.
Pictures become links to themselves in full size. Long CamelCase names in tables may break before a capital letter.
"""

from __future__ import annotations

import re
from pathlib import Path

_DOCS = Path(__file__).resolve().parents[1] / "docs"
_OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+((?!docs/)[^)#\s]+)(?:#[^)\s]*)?\)")
_NAMED_AFTER_FILE = re.compile(r"\[`?([\w-]+)\.md`?\]\(((?:[\w.-]+/)*\1\.md)((?:#[^)\s]*)?)\)")
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_CELL = re.compile(r"(<td[^>]*>)(\w{20,})(?=</td>)")
_WORD_START = re.compile(r"(?<=[a-z_])(?=[A-Z0-9])|(?<=_)(?=[a-z])")
_PICTURE = re.compile(r'<img [^>]*src="([^"]+)"[^>]*>')


def on_page_markdown(markdown: str, page: object, **_: object) -> str:
    """Return a page's Markdown with links for the site.

    Each link to a file outside of docs becomes its text and the path. The text of a link such as ``[cli.md](cli.md)``
    becomes the title of that page.
    """
    source = str(getattr(getattr(page, "file", None), "src_uri", ""))
    depth = source.count("/")

    def outside(found: re.Match[str]) -> str:
        ups = found.group(0).count("../")
        if ups <= depth:
            return found.group(0)
        text, path = found.group(1).strip("`"), found.group(2)
        return f"`{path}`" if path.rstrip("/").endswith(text) else f"{text} (`{path}`)"

    def titled(found: re.Match[str]) -> str:
        target = (_DOCS / source).parent / found.group(2)
        title = _TITLE.search(target.read_text(encoding="utf-8")) if target.is_file() else None
        return found.group(0) if title is None else f"[{title.group(1)}]({found.group(2)}{found.group(3)})"

    return _NAMED_AFTER_FILE.sub(titled, _OUTSIDE.sub(outside, markdown))


def on_page_content(html: str, **_: object) -> str:
    """Return a page's HTML for narrow screens.

    Each picture becomes a link to itself, because on a phone only the full size is readable. A table cell that
    consists of a long name gets places for line breaks, such as ``Scheduling<wbr>Pod<wbr>Affinity``.
    """
    html = _CELL.sub(lambda found: found.group(1) + _WORD_START.sub("<wbr>", found.group(2)), html)
    return _PICTURE.sub(lambda found: f'<a href="{found.group(1)}">{found.group(0)}</a>', html)
