"""Content negotiation: JSON, YAML or protobuf; whole objects, tables, or metadata only."""

from __future__ import annotations

import re
from collections.abc import Mapping
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
_VARIANTS = frozenset(("as", "g", "v"))
"""Parameters of a media type that request another kind than the object itself."""
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
    """Return the alternatives of an Accept header, best first.

    Of equal quality, wildcards come last, and other alternatives keep their order.
    """
    clauses = []
    for part in header.split(","):
        media_type, *rest = (each.strip() for each in part.split(";"))
        parameters = {name.strip(): value.strip() for name, _, value in (each.partition("=") for each in rest)}
        try:
            quality = float(parameters.pop("q", "1"))
        except ValueError:
            quality = 0.0
        if media_type:
            clauses.append(Clause(media_type, parameters, quality))
    return sorted(clauses, key=_rank)


def _rank(clause: Clause) -> tuple[float, bool, bool]:
    return -clause.quality, clause.media_type.startswith("*"), clause.media_type.endswith("/*")


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
    if not untyped and not any(clause.media_type in ("*/*", *OBJECT_TYPES) for clause in clauses):
        offered: tuple[str, ...] = (*OBJECT_TYPES, *_STREAM_TYPES) if is_list else OBJECT_TYPES
        text = f"406: Not Acceptable\n\nAvailable representations: {', '.join(offered)}"
        raise ApiError(406, text, details={})
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
    if not media_type or not _has_stream(clause, media_type):
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


def wants_indentation(query: Mapping[str, str], headers: Mapping[str, str]) -> bool:
    """Return whether to indent JSON: as the parameter `pretty` says, else for browsers, curl and Wget.

    Source: apiserver/pkg/endpoints/handlers/negotiation/negotiate.go v1.36.3.
    """
    pretty = query.get("pretty")
    return pretty in _TRUE if pretty else headers.get("user-agent", "").startswith(_INDENTED_AGENTS)


def error_form(accept: str, *, pretty: bool) -> Form:
    """Return the format of an error.

    A client that accepts no error, but only a table or a list of API groups, for example, gets indented JSON.
    """
    for clause in parse_accept(accept or "*/*"):
        media_type = next((each for each in OBJECT_TYPES if matches(clause.media_type, each)), "")
        if media_type and not _VARIANTS & clause.parameters.keys() and _has_stream(clause, media_type):
            return Form(media_type, pretty=pretty and media_type == JSON) if media_type != JSON or pretty else PLAIN
    return Form(JSON, pretty=True)


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
