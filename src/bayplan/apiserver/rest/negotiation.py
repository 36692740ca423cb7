"""Content negotiation: JSON, YAML or protobuf; whole objects, tables, or metadata only."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

import msgspec

from bayplan.apiserver.model.errors import ApiError

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
OBJECT_TYPES = (JSON, YAML, PROTOBUF)
_STREAM_TYPES = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")
_INDENTED_AGENTS = ("curl", "Wget", "Mozilla/5.0")
_TRUE = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_EXTRAS = frozenset(("as", "g", "v", "sv"))
"""Parameters of a media type that request another kind than the object itself, or another version of the server."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_MAX_INSERTED = 12
_CONVERSIONS = {
    ("Table", "meta.k8s.io", "v1"), ("Table", "meta.k8s.io", "v1beta1"),
    ("PartialObjectMetadata", "meta.k8s.io", "v1"), ("PartialObjectMetadata", "meta.k8s.io", "v1beta1"),
    ("PartialObjectMetadataList", "meta.k8s.io", "v1"), ("PartialObjectMetadataList", "meta.k8s.io", "v1beta1"),
}  # fmt: skip


class Form(msgspec.Struct, frozen=True):
    """The format of a response.

    Attributes:
        media_type: JSON, YAML or PROTOBUF.
        kind: ``Table``, ``PartialObjectMetadata``, or empty for the object itself.
        version: the version of that kind, such as "v1".
        pretty: whether to indent JSON.
        wanted: the kind as the client requested it; its suffix "List" distinguishes lists from objects.
    """

    media_type: str = JSON
    kind: str = ""
    version: str = "v1"
    pretty: bool = False
    wanted: str = ""


PLAIN = Form()


class Clause(msgspec.Struct, frozen=True):
    """One alternative of an Accept header.

    Attributes:
        media_type: the media type, which may contain wildcards.
        parameters: the parameters except `q`, such as `as`, `g` and `v`.
        quality: the parameter `q`: 1 by default, 0 if malformed.
    """

    media_type: str
    parameters: dict[str, str]
    quality: float


def parse_accept(header: str) -> list[Clause]:
    """Return the alternatives of an Accept header, in the order in which upstream tries them.

    Alternatives and parameters that upstream's parser can't read are left out.

    Source: github.com/munnerz/goautoneg, which kube-apiserver uses.
    """
    clauses: list[Clause] = []
    for part in header.split(","):
        media_type, *rest = part.strip(" ").split(";")
        names = [each.strip(" ") for each in media_type.split("/")]
        if names == ["*"]:
            names = ["*", "*"]
        if len(names) != 2 or not names[1]:
            continue
        parameters = {}
        quality = 1.0
        for name, _, value in (each.partition("=") for each in rest):
            if not value or "=" in value:
                continue
            if name.strip(" ") == "q":
                quality = float(value) if _NUMBER.fullmatch(value) else 0.0
            else:
                parameters[name.strip(" ")] = value.strip(" ")
        clauses.append(Clause("/".join(names), parameters, quality))
    return _sorted(clauses)


def _sorted(clauses: list[Clause]) -> list[Clause]:
    """Sort as upstream does: its comparison is not transitive, so the result depends on the algorithm.

    Go sorts up to twelve elements by insertion.
    """
    if len(clauses) > _MAX_INSERTED:
        return sorted(clauses, key=lambda each: (-each.quality, each.media_type.startswith("*"), _any_subtype(each)))
    for end in range(1, len(clauses)):
        index = end
        while index and _precedes(clauses[index], clauses[index - 1]):
            clauses[index - 1], clauses[index] = clauses[index], clauses[index - 1]
            index -= 1
    return clauses


def _precedes(one: Clause, other: Clause) -> bool:
    if one.quality > other.quality:
        return True
    if not one.media_type.startswith("*/") and other.media_type.startswith("*/"):
        return True
    return not _any_subtype(one) and _any_subtype(other)


def _any_subtype(clause: Clause) -> bool:
    return clause.media_type.endswith("/*")


@lru_cache(maxsize=256)
def negotiate(
    accept: str,
    *,
    stream: bool = False,
    is_list: bool = False,
    tables: bool = True,
    json_first: bool = False,
    untyped: bool = False,
    pretty: bool = False,
) -> Form:
    """Return the best format that a client accepts.

    Args:
        accept: the Accept header; empty means anything.
        stream: whether the response is a watch.
        is_list: whether the request lists or watches objects, for which upstream's error names the types of watches, too.
        tables: whether the endpoint has tables.
        json_first: whether JSON replaces protobuf if the client accepts the same kind as JSON, as encoding takes too long.
        untyped: whether complete objects have no protobuf, as custom objects and their scales in upstream.
        pretty: whether the client requests indentation.

    Raises:
        ApiError: the client accepts none of the supported types.
    """
    if not accept or accept == "*/*" or accept == JSON:
        return Form(JSON, pretty=pretty) if pretty else PLAIN
    clauses = parse_accept(accept)
    # The framework refuses other types first, which does not serve custom objects.
    if not untyped:
        require_named(accept, OBJECT_TYPES, (*OBJECT_TYPES, *_STREAM_TYPES) if is_list else OBJECT_TYPES)
    forms = [form for each in clauses if (form := _form(each, pretty)) is not None]
    for form in forms:
        if form.kind == "Table" and (not tables or form.media_type == PROTOBUF):
            continue
        if form.media_type == PROTOBUF and untyped and not form.kind:
            continue
        if form.media_type == PROTOBUF and json_first:
            same = msgspec.structs.replace(form, media_type=JSON)
            return next((each for each in forms if each == same), form)
        if stream and form.media_type == YAML:
            break  # YAML is accepted first, and has no streams.
        return form
    offered = _STREAM_TYPES if stream and forms else OBJECT_TYPES
    raise ApiError(406, f"only the following media types are accepted: {', '.join(offered)}")


def _form(clause: Clause, pretty: bool) -> Form | None:
    media_type = next((each for each in OBJECT_TYPES if matches(clause.media_type, each)), "")
    if not media_type or not _has_stream(clause, media_type) or clause.parameters.get("sv", "v1") != "v1":
        return None
    kind = clause.parameters.get("as", "")
    if not kind and ("g" in clause.parameters or "v" in clause.parameters):
        return None
    if not kind:
        # Callers compare forms with PLAIN by identity, and send stored bytes unchanged for PLAIN.
        return PLAIN if media_type == JSON and not pretty else Form(media_type, pretty=pretty)
    version = clause.parameters.get("v", "")
    if (kind, clause.parameters.get("g", ""), version) not in _CONVERSIONS:
        return None
    return Form(media_type, kind.removesuffix("List"), version, pretty, kind)


def _has_stream(clause: Clause, media_type: str) -> bool:
    """Return whether the stream that a clause may require exists: YAML has none."""
    stream = clause.parameters.get("stream", "")
    return not stream or (stream == "watch" and media_type != YAML)


def require_named(accept: str, named: Collection[str], listed: Iterable[str]) -> None:
    """Raise ApiError if an Accept header names neither one of some types nor `*/*`, as upstream's HTTP framework does.

    Source: github.com/emicklei/go-restful, route.go.

    Args:
        accept: the header; empty means anything.
        named: the types.
        listed: the types that the error lists.
    """
    wanted = (each.partition(";")[0].strip(" ") for each in accept.split(","))
    if accept and not any(each == "*/*" or each in named for each in wanted):
        raise ApiError(406, f"406: Not Acceptable\n\nAvailable representations: {', '.join(listed)}", details={})


def wants_indentation(query: Mapping[str, str], headers: Mapping[str, str]) -> bool:
    """Return whether to indent JSON: as the parameter `pretty` says, else for browsers, curl and Wget.

    Source: apiserver/pkg/endpoints/handlers/negotiation/negotiate.go v1.36.3.
    """
    pretty = query.get("pretty")
    return pretty in _TRUE if pretty else headers.get("user-agent", "").startswith(_INDENTED_AGENTS)


def error_form(accept: str, *, pretty: bool, offered: Iterable[str] = OBJECT_TYPES) -> Form:
    """Return the format of an error, one of the offered types.

    A client that accepts no error, but only a table or a list of API groups, for example, gets indented JSON.
    """
    return plain_form(accept, pretty=pretty, offered=offered) or Form(JSON, pretty=True)


def plain_form(accept: str, *, pretty: bool, offered: Iterable[str] = OBJECT_TYPES) -> Form | None:
    """Return the best of the offered formats for complete objects, or None if the client accepts none."""
    for clause in parse_accept(accept or "*/*"):
        media_type = next((each for each in offered if matches(clause.media_type, each)), "")
        if media_type and not _EXTRAS & clause.parameters.keys() and _has_stream(clause, media_type):
            return Form(media_type, pretty=pretty and media_type == JSON) if media_type != JSON or pretty else PLAIN
    return None


def matches(wanted: str, offered: str) -> bool:
    """Return whether a media type, which may contain wildcards, covers the offered media type."""
    return wanted in ("*/*", offered) or (wanted.endswith("/*") and offered.startswith(wanted[:-1]))


_PARAMETERS = re.compile(r'[^;]*(?:;\s*[^\s;=,"]+=(?:[^\s;=,"]+|"[^"]*")\s*)*;?')
"""A media type with parameters that Go's parser accepts, without trailing whitespace. Matching takes linear time."""


def input_type(content_type: str) -> str:
    """Return the media type of a request body: JSON if the header is empty.

    Raises:
        ApiError: the type is not supported.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    if not media_type:
        return JSON
    if media_type in OBJECT_TYPES and (";" not in content_type or _PARAMETERS.fullmatch(content_type.strip())):
        return media_type
    listed = ", ".join(OBJECT_TYPES)
    text = f"the body of the request was in an unknown format - accepted media types include: {listed}"
    raise ApiError(415, text)
