"""Write plain data as YAML in many styles, as people and programs write it, for property tests."""

import json
from dataclasses import dataclass

from hypothesis import strategies as st

TEXTS = st.one_of(
    st.sampled_from(
        ["web", "yes", "no", "on", "0777", "1.0", "1:30", "~", "", "null", "100m", "a b", "x: y", "# no", "-"]
    ),
    st.sampled_from(
        ["2024-01-01T00:00:00Z", "- x", "a\nb\n", "  lead", "trail ", "tab\there", "it's", '"q"', "é\u4e2d", "*x"]
    ),
    st.text(alphabet="abcxyz019-_./ ", max_size=12),
)
SCALARS = st.one_of(TEXTS, st.booleans(), st.none(), st.integers(-(2**63), 2**63 - 1), st.just(0.5))
KEYS = st.one_of(st.sampled_from(["name", "spec", "on", "y", "1", "a.b/c", "items"]), TEXTS)
DATA = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=25,
)
DOCUMENTS = st.dictionaries(KEYS, DATA, min_size=1, max_size=5)


@dataclass(frozen=True)
class Style:
    """A style of YAML: flow or block collections, the kind of quotes, the indentation, comments, and the line ends."""

    flow: bool
    single_quotes: bool
    indent: int
    comments: bool
    newline: str


STYLES = st.builds(
    Style,
    flow=st.booleans(),
    single_quotes=st.booleans(),
    indent=st.integers(1, 4),
    comments=st.booleans(),
    newline=st.sampled_from(["\n", "\r\n"]),
)


def write(value: object, style: Style) -> str:
    """Return a YAML document of a value in a style."""
    lines = [_flow(value, style)] if style.flow else _block(value, style)
    return style.newline.join(lines) + style.newline


def _scalar(value: object, style: Style) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    if value.isalpha() and len(value) > 4 and value.lower() not in ("false",):
        return value
    if style.single_quotes and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    return json.dumps(value)


def _flow(value: object, style: Style) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(key, style)}: {_flow(item, style)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(item, style) for item in value) + "]"
    return _scalar(value, style)


def _block(value: object, style: Style) -> list[str]:
    if not isinstance(value, dict | list) or not value:
        return [_flow(value, style)]
    lines: list[str] = []
    entries = [(f"{_scalar(key, style)}:", item) for key, item in value.items()] if isinstance(value, dict) else None
    for head, item in entries if entries is not None else [("-", item) for item in value]:
        if style.comments:
            lines.append("# - a: comment")
        inner = _block(item, style)
        if isinstance(item, dict | list) and item:
            lines.append(head)
            lines += [" " * style.indent + line for line in inner]
        else:
            lines.append(f"{head} {inner[0]}" + (" # of: a value" if style.comments else ""))
    return lines
