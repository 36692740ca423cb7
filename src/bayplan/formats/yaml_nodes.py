"""Node trees of YAML text: libyaml's composer, the positions of values, and the conversion of a tree to plain data.

`bayplan.formats.yaml_text` describes the rules. Stock PyYAML is slow (3 to 7 MB/s) because of its resolver, its
constructor and cyclic garbage collection. Without them it reaches 6 to 12 MB/s, and `bayplan.formats.yaml_fast`, where
that is usable, twice as much. PyYAML's C composer recurses on the C stack, so the depth is checked first if the text could
nest deeply.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, TypeAlias

import yaml
from yaml._yaml import CParser
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from bayplan.base.text_encoding import decode_leniently
from bayplan.formats.json_tree import JsonNode
from bayplan.formats.yaml_scalars import HINTS, KEYS, VALUES, Scalar, json_value, key_text, tagged_value
from bayplan.formats.yaml_text import GO_MAX_DEPTH, MAX_DEPTH, Parsed, YamlError
from bayplan.formats.yaml_tree import Evaluator, GoYamlError, Value, json_tree, plain


class AliasError(yaml.MarkedYAMLError):
    """An alias that can't be resolved. `go_problem` is the message of go-yaml."""

    def __init__(self, problem: str, mark: Any, go_problem: str) -> None:
        super().__init__(problem=problem, problem_mark=mark)
        self.go_problem = go_problem


class _Composer(CParser):
    """libyaml's parser and composer. The tag of a scalar is "" if it is plain, None if it is quoted, or the tag as written."""

    def descend_resolver(self, current_node: object, current_index: object) -> None:
        pass

    def ascend_resolver(self) -> None:
        pass

    def resolve(self, kind: type, value: object, implicit: object) -> str | None:
        if kind is ScalarNode and implicit[0]:  # type: ignore[index]
            return ""
        return None


_DEEP_BLOCK = re.compile(rf"(?:\A|\n)[ \t?:\-]{{{MAX_DEPTH // 2 - 8}}}")
_ALIAS = re.compile(r"(?:\A|[\s,:\[{])\*[\w-]")
_ANCHOR = re.compile(r"(?:\A|[\s,:\[{])&[\w-]")
_BARE_TAG = re.compile(r"(?:\A|[\s,:\[{])!(?=\s)")
_NEWER_VERSION = re.compile(
    r"\ufeff?(?:[ \t]*(?:#[^\n]*)?\r?\n|%TAG[^\n]*\n)*(%YAML[ \t]+1\.2)[ \t]*(?:#[^\n]*)?(?:[\r\n]|\Z)"
)
"""The directive of YAML 1.2 at the start of a text. libyaml accepts it, go-yaml does not."""
_INCOMPATIBLE = "found incompatible YAML document"


def _line_of_newer_version(text: str) -> int | None:
    """Return the 0-based line of the directive of YAML 1.2, or None if the first document does not start with one."""
    found = _NEWER_VERSION.match(text) if "%YAML" in text else None
    return text.count("\n", 0, found.start(1)) if found else None


def _needs_care(text: str) -> bool:
    """Return whether a text may contain aliases, merge keys, repeated anchors or the tag `!`.

    A false positive only costs time. Substring tests come first, because they are a hundred times as fast as the
    patterns.
    """
    return (
        "<<" in text
        or ("*" in text and _ALIAS.search(text) is not None)
        or (text.count("&") > 1 and len(_ANCHOR.findall(text)) > 1)
        or ("!" in text and _BARE_TAG.search(text) is not None)
    )


def parse_slowly(text: str) -> Iterator[Parsed]:
    """Yield the same documents as `bayplan.formats.yaml_text.parse`, without `bayplan.formats.yaml_fast`."""
    careful = _needs_care(text)
    for node in compose(text, careful=careful):
        try:
            yield _construct(node, careful)
        except RecursionError:
            raise YamlError("lists and objects nested too deeply", node.start_mark.line) from None


def read_yaml(text: bytes) -> tuple[JsonNode, str | None]:
    """Parse the first document of a text like kube-scheduler: with sorted keys, and with go-yaml's messages.

    Return its JSON form, and the message about its duplicate keys; None if it has none.

    libyaml has the messages of go-yaml. In flow style, newer libyaml is stricter in two places: a plain scalar can't
    end in a colon (``{name: a:}``), and a tag can't contain brackets.

    Raises:
        GoYamlError: the text is not YAML, or has no JSON form.
    """
    evaluator = Evaluator()
    try:
        root = _first_document(text)
        tree = json_tree(evaluator.value(root)) if root is not None else None
    except RecursionError:
        raise GoYamlError(f"yaml: exceeded max depth of {GO_MAX_DEPTH}") from None
    return tree, evaluator.complaint or None


def _first_document(text: bytes) -> Node | None:
    """Return the node tree of the first document, None if there is none. The rest of the text is not parsed."""
    line = _line_of_newer_version(decode_leniently(text))
    if line is not None:
        raise GoYamlError(f"yaml: {f'line {line}: ' if line else ''}{_INCOMPATIBLE}")
    source = events(text or b"\n")
    try:
        root = next(compose_events(source), None)
        # Parse the end of the document, too.
        next(source, None)
    except AliasError as error:
        raise GoYamlError(f"yaml: {error.go_problem}") from None
    except yaml.MarkedYAMLError as error:
        raise GoYamlError(f"yaml: {_place(error)}{error.problem}") from None
    except yaml.reader.ReaderError as error:
        raise GoYamlError(f"yaml: {error.reason}") from None
    return root


def _place(error: yaml.MarkedYAMLError) -> str:
    """Return the line prefix of go-yaml's message: marks are 0-based, and only scanner errors are shown 1-based."""
    line = 0
    if error.problem_mark is not None and error.problem_mark.line:
        line = error.problem_mark.line + (1 if isinstance(error, yaml.scanner.ScannerError) else 0)
    elif error.context_mark is not None:
        line = error.context_mark.line
    return f"line {line}: " if line else ""


def compose(text: str, *, careful: bool = True) -> Iterator[Node]:
    """Yield the node trees of a text, with positions. Also used to find the line of a value later.

    Args:
        text: any number of documents.
        careful: whether the text may repeat an anchor or use the tag `!`, for which PyYAML's composer and kubectl
            differ.

    Raises:
        YamlError: see `parse`.
    """
    _check_depth(text)
    line = _line_of_newer_version(text)
    if line is not None:
        raise YamlError(_INCOMPATIBLE, line, "'%YAML 1.1', or no such directive, because kubectl reads YAML 1.1")
    try:
        if careful:
            yield from compose_events(events(text))
            return
        composer = _Composer(text)
        while composer.check_node():
            node = composer.get_node()
            if node is not None:
                yield node
    except yaml.YAMLError as problem:
        raise _explain(problem, text) from None


Event: TypeAlias = tuple[type, Any]
"""An event of libyaml and its class. Typed loosely because PyYAML's stubs declare marks as optional."""


def events(text: str | bytes) -> Iterator[Event]:
    """Yield libyaml's events for a text.

    Raises:
        RecursionError: the text is nested more than 1,000 deep, which libyaml refuses since its version 0.2.6.
        yaml.YAMLError: the text is not YAML.
    """
    parser = _Composer(text)
    try:
        for event in iter(parser.get_event, None):
            yield event.__class__, event
    except yaml.scanner.ScannerError as problem:
        if problem.problem == "exceeded maximum nesting depth":
            raise RecursionError from None
        raise


def compose_events(events: Iterator[Event]) -> Iterator[Node]:
    """Compose node trees from the parser's events. An alias refers to the last definition of its anchor before the alias.

    Each tree is yielded before the end of its document is parsed.

    Raises:
        AliasError: an alias has no anchor, or is part of the value that it stands for.
        RecursionError: the text is nested more deeply than go-yaml allows.
        yaml.YAMLError: the text is not YAML.
    """
    stack: list[Node] = []
    waiting: list[Node | None] = []  # For each open mapping, the key whose value comes next; for each list, None.
    anchors: dict[str, Node] = {}
    for kind, event in events:
        if kind is yaml.DocumentStartEvent:
            anchors = {}
        if kind in (yaml.SequenceEndEvent, yaml.MappingEndEvent):
            waiting.pop()
            node = stack.pop()
        elif kind is yaml.AliasEvent:
            name = event.anchor
            if name not in anchors:
                unknown = f"unknown anchor '{name}' referenced"
                raise AliasError(f"found undefined alias {name!r}", event.start_mark, unknown)
            node = anchors[name]
            if node in stack:
                recursive = f"anchor '{name}' value contains itself"
                raise AliasError("an anchor whose value contains itself", node.start_mark, recursive)
        elif kind in (yaml.ScalarEvent, yaml.SequenceStartEvent, yaml.MappingStartEvent):
            node = _node_of(kind, event)
            if event.anchor is not None:
                anchors[event.anchor] = node
            if kind is not yaml.ScalarEvent:
                stack.append(node)
                waiting.append(None)
                if len(stack) > GO_MAX_DEPTH:
                    raise RecursionError
                continue
        else:
            continue
        if not stack:
            yield node
        elif isinstance(stack[-1], SequenceNode):
            stack[-1].value.append(node)
        elif waiting[-1] is None:
            waiting[-1] = node
        else:
            stack[-1].value.append((waiting[-1], node))
            waiting[-1] = None


def _node_of(kind: type, event: Any) -> Node:
    if kind is yaml.ScalarEvent:
        plain = event.tag is None and event.implicit[0]
        return ScalarNode("" if plain else event.tag, event.value, event.start_mark, event.end_mark)
    node = MappingNode if kind is yaml.MappingStartEvent else SequenceNode
    return node(event.tag, [], event.start_mark, event.end_mark)


def _check_depth(text: str) -> None:
    """Raise YamlError if a text is nested too deeply, before the C composer recurses into it."""
    if text.count("[") + text.count("{") <= MAX_DEPTH // 2 and not _DEEP_BLOCK.search(text):
        return
    depth = line = 0
    try:
        for kind, event in events(text):
            line = event.start_mark.line
            if kind in (yaml.SequenceStartEvent, yaml.MappingStartEvent):
                depth += 1
                if depth > MAX_DEPTH:
                    raise RecursionError
            elif kind in (yaml.SequenceEndEvent, yaml.MappingEndEvent):
                depth -= 1
    except RecursionError:
        raise YamlError(f"lists and objects nested more than {MAX_DEPTH} deep", line) from None
    except yaml.YAMLError as problem:
        raise _explain(problem, text) from None


_TIPS = (
    ("cannot start any token", "\t", "spaces instead of tabs"),
    ("", "{{", "rendering the template first"),
    ("mapping values are not allowed", "", "quotes around a value that holds ': ', or check the indentation"),
    ("cannot start any token", "", "quotes around a value that starts with a special character"),
    ("did not find expected key", "", "the same indentation for all fields of an object"),
    ("could not find expected ':'", "", "a field as 'name: value'"),
)


def _explain(problem: yaml.YAMLError, text: str) -> YamlError:
    """Convert PyYAML's error to a YamlError with a line and a suggestion."""
    mark = getattr(problem, "problem_mark", None) or getattr(problem, "context_mark", None)
    if mark is None:  # ReaderError: a character that YAML does not allow. Its position counts bytes.
        position = getattr(problem, "position", 0)
        line = text.encode("utf-8", "replace").count(b"\n", 0, position if isinstance(position, int) else 0)
        return YamlError(str(getattr(problem, "reason", problem)), line)
    reason = str(getattr(problem, "problem", None) or "not YAML")
    context = getattr(problem, "context", None)
    if "end of stream" in reason:  # An unclosed quote: its start is a better position than the end of the text.
        mark = getattr(problem, "context_mark", None) or mark
    line = min(mark.line, text.rstrip().count("\n"))  # At the end of a text, libyaml's line is past the last line.
    around = text.split("\n", line + 1)[line]
    hint = next((tip for what, sign, tip in _TIPS if what in reason and sign in around), "")
    return YamlError(f"{reason} {context}" if context else reason, line, hint)


def _construct(node: Node, careful: bool) -> Parsed:
    line, item_lines = node.start_mark.line, _item_lines(node)
    if not careful:
        with suppress(ValueError):
            return Parsed(_build(node), line, item_lines=item_lines)
    # Evaluate aliases and merge keys, or find the duplicate keys or the line of the error.
    evaluator = Evaluator()
    value: Value = None
    with suppress(GoYamlError):
        value = evaluator.value(node)
    if evaluator.problem is not None:
        raise YamlError(*evaluator.problem)
    return Parsed(plain(value), line, evaluator.duplicates, item_lines, complaint=evaluator.complaint)


def _item_lines(node: Node) -> list[int]:
    if node.__class__ is MappingNode:
        for key, item in node.value:
            if key.value == "items" and item.__class__ is SequenceNode:
                return [element.start_mark.line for element in item.value]
    return []


def _build(node: Node) -> object:
    """Convert a node to plain data, in a document without aliases and merge keys, as most are.

    Raises:
        ValueError: the node is invalid, or has duplicate keys.
    """
    if node.__class__ is MappingNode:
        result: dict[str, object] = {}
        for key_node, item in node.value:
            key = KEYS[key_node.value] if key_node.tag == "" else _other_key(key_node)
            result[key] = _scalar(item) if item.__class__ is ScalarNode else _build(item)
        if len(result) != len(node.value):
            raise ValueError("duplicate keys")
        return result
    if node.__class__ is SequenceNode:
        return [_build(item) for item in node.value]
    return _scalar(node)


def _scalar(node: Node) -> Scalar:
    text: str = node.value
    if node.tag == "":
        return VALUES[text] if text[:1] in HINTS else text
    return text if node.tag is None else json_value(tagged_value(node.tag, text))


def _other_key(node: Node) -> str:
    """Return the field name of a key that is quoted or tagged."""
    if node.__class__ is not ScalarNode:
        raise ValueError("a list or an object as key")
    return node.value if node.tag is None else key_text(tagged_value(node.tag, node.value))


# --- lines of fields --------------------------------------------------------------------------------------------------

_INDEX = re.compile(r"\[(\d+)\]")


def find_node(node: Node, path: str, line: int | None = None) -> tuple[int, Node | None]:
    """Return the line (counted from 0) and the node at a path such as `.spec.ports[0]` below a node.

    As field names may contain dots and brackets (labels do), the longest name that matches is used. If the path does
    not exist, return the line of its last existing part, and None.
    """
    here: int = node.start_mark.line if line is None else line
    if not path:
        return here, node
    if isinstance(node, SequenceNode):
        match = _INDEX.match(path)
        index = int(match[1]) if match else -1
        if match and index < len(node.value):
            return find_node(node.value[index], path[match.end() :])
    elif isinstance(node, MappingNode) and path.startswith("."):
        rest = path[1:]
        fits = [
            (key.value, key.start_mark.line, item)
            for key, item in node.value
            if isinstance(key, ScalarNode)
            and rest.startswith(key.value)
            and rest[len(key.value) :][:1] in ("", ".", "[")
        ]
        if fits:
            name, key_line, item = max(fits, key=lambda fit: len(fit[0]))
            return find_node(item, rest[len(name) :], key_line)
    return here, None


def plain_text(node: Node | None) -> str:
    """Return the spelling of a plain scalar; "" for any other node, and for None."""
    return str(node.value) if isinstance(node, ScalarNode) and node.tag == "" else ""
