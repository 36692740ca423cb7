"""Endpoints that are not resources: discovery, version, health and OpenAPI, and the errors of unknown paths."""

from __future__ import annotations

import msgspec

from bayplan.apiserver.api_documents import discovery, openapi
from bayplan.apiserver.kinds import api_services
from bayplan.apiserver.model.errors import ApiError, method_not_allowed, no_such_path
from bayplan.apiserver.model.resources import version_rank
from bayplan.apiserver.rest import operator_endpoints
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.messages import Request, Response, values_of
from bayplan.apiserver.rest.negotiation import (
    JSON,
    OBJECT_TYPES,
    Form,
    matches,
    parse_accept,
    plain_form,
    require_named,
    wants_indentation,
)
from bayplan.apiserver.rest.rendering import encode_document
from bayplan.apiserver.rest.service_tokens import ISSUER
from bayplan.apiserver.rest.signing_key import ALGORITHM
from bayplan.apiserver.schema.facts import api_facts
from bayplan.base.plain_data import Document, part
from bayplan.objects.selectors import quote

_TEXT = "text/plain; charset=utf-8"
_HEALTH = {"healthz": "livez", "livez": "livez", "readyz": "readyz"}
_AGGREGATED = ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList")
_KEYS_PATH = ["openid", "v1", "jwks"]
_ISSUER_PATHS = ([".well-known", "openid-configuration"], _KEYS_PATH)
_NOT_SNIFFED = ("x-content-type-options", "nosniff")
_KEYS = "application/jwk-set+json"
_OPENAPI_FORMS = {
    "json": JSON,
    "com.github.proto-openapi.spec.v2@v1.0+protobuf": openapi.PROTOBUF,
    "com.github.proto-openapi.spec.v2.v1.0+protobuf": openapi.PROTOBUF,
    "*": JSON,
}


class MetaEndpoints:
    """Handles requests that are not about resources.

    Args:
        backend: the backend, for the served resources.
        address: the server address that discovery reports to clients.
        scheme: the scheme of the server's URL.
    """

    def __init__(self, backend: Backend, address: str, scheme: str = "https") -> None:
        self._backend = backend
        self._address = address
        self._scheme = scheme
        self._openapi = openapi.OpenApi(backend.registry)
        self._operators = operator_endpoints.OperatorEndpoints(backend)

    def handle(self, request: Request) -> Response:
        """Return the response for a path that is not a resource.

        Raises:
            ApiError: the path does not exist or is read-only, or the client accepts no supported format.
        """
        segments = [each for each in request.path.split("/") if each]
        first = segments[0] if segments else ""
        if _has_empty_segments(request.path):
            if first in ("api", "apis") and not request.path.startswith(("//", "/apis//")):
                raise no_such_path()
            return _not_found()
        if request.method != "GET" and segments in (["version"], ["api"]):
            raise method_not_allowed()
        if first == "version" and len(segments) > 1:
            raise no_such_path()
        if first in _HEALTH:
            if len(segments) > 1 and request.path.endswith("/"):
                return _not_found()
            return self._health(_HEALTH[first], segments, request)
        if first == "version":
            require_named(request.headers.get("accept", ""), (JSON,), (JSON,))
            return self._json({**api_facts().version})
        if first in ("api", "apis"):
            return self._discovery(segments, request)
        if first == "openapi":
            return self._openapi_document(segments[1:], request)
        if request.path == "/metrics/slis":
            return self._operators.metrics()
        if request.path in operator_endpoints.KINDS:
            return self._operators.handle(operator_endpoints.KINDS[request.path], request)
        if segments in _ISSUER_PATHS:
            return self._issuer(segments == _KEYS_PATH, request)
        if not segments or request.path == "/index.html":
            return self._json({"paths": self._paths()})
        return _not_found()

    def _json(self, document: Document) -> Response:
        return Response(200, encode_document(document, Form(JSON, pretty=True)), JSON)

    def _paths(self) -> list[str]:
        known = list(api_facts().paths)
        for group, version in self._backend.registry.versions:
            for path in (f"/apis/{group}", f"/apis/{group}/{version}"):
                if group and path not in known:
                    known.append(path)
        return sorted(known)

    def _remote_group(self, name: str) -> Document | None:
        """Return the document of a group that only APIServices declare, or None if there is none."""
        specs = [part(each, "spec") for each in self._backend.all(api_services.TABLE)]
        found = [each for each in specs if each.get("group") == name]
        found.sort(key=lambda each: (-_number(each.get("versionPriority")), version_rank(str(each.get("version")))))
        versions = [{"groupVersion": f"{name}/{each['version']}", "version": each["version"]} for each in found]
        if not versions:
            return None
        head: Document = {"kind": "APIGroup", "apiVersion": "v1", "name": name}
        return {**head, "versions": versions, "preferredVersion": versions[0]}

    def _is_remote(self, group: str, version: str) -> bool:
        """Return whether a Service serves a version of a group."""
        found = self._backend.find(api_services.TABLE, "", f"{version}.{group}")
        return found is not None and api_services.is_remote(found)

    def _discovery(self, segments: list[str], request: Request) -> Response:
        registry, accept = self._backend.registry, request.headers.get("accept", "")
        if len(segments) == 1:
            if segments[0] == "api":
                require_named(accept, OBJECT_TYPES, OBJECT_TYPES)
            if request.path != "/apis/" and _wants_aggregated(accept):
                return self._aggregated(request, core=segments[0] == "api")
            document = discovery.api_versions(self._address) if segments[0] == "api" else discovery.group_list(registry)
            return _negotiated(document, request)
        if segments[0] == "api":
            found = discovery.resource_list(registry, "", segments[1]) if len(segments) == 2 else None
        elif len(segments) == 2:
            found = discovery.group(registry, segments[1])
        else:
            found = discovery.resource_list(registry, segments[1], segments[2]) if len(segments) == 3 else None
        if found is not None:
            # The framework serves the versions of built-in groups; others, and /apis/GROUP, ignore the method.
            if segments[0] == "api" or (len(segments) > 2 and not registry.is_custom(segments[1])):
                if request.method != "GET":
                    raise method_not_allowed()
                require_named(accept, OBJECT_TYPES, OBJECT_TYPES)
            return _negotiated(found, request)
        if len(segments) > 2 and self._is_remote(segments[1], segments[2]):
            # Requests are not proxied, because there is no network behind the Service.
            return Response(503, b"service unavailable\n", _TEXT, [_NOT_SNIFFED])
        if segments[0] == "apis" and len(segments) == 2:
            declared = self._remote_group(segments[1])
            if declared is not None:
                return _negotiated(declared, request)
        if segments[0] == "apis" and (segments[1] not in registry.groups or registry.is_custom(segments[1])):
            return _not_found()
        raise no_such_path()

    def _aggregated(self, request: Request, *, core: bool) -> Response:
        document = discovery.aggregated(self._backend.registry, core=core)
        tag = discovery.etag(document)
        body = encode_document(document, Form(JSON, pretty=wants_indentation(request.query, request.headers)))
        headers = [("etag", tag), ("vary", "Accept")]
        if request.headers.get("if-none-match") == tag:
            return Response(304, b"", "", headers)
        return Response(200, body, discovery.AGGREGATED, headers)

    def _openapi_document(self, segments: list[str], request: Request) -> Response:
        """Return an OpenAPI document, or the index of those of version 3. Upstream ignores the method."""
        is_folder = request.path.endswith("/")
        if segments == ["v2"] and not is_folder:
            media_type = _openapi_media_type(request.headers.get("accept") or "*/*")
            if not media_type:
                return Response(406, b"", "", [("vary", "Accept")])
            body, tag = self._openapi.version_2(protobuf=media_type == openapi.PROTOBUF)
            return _cached(request, body, tag, media_type)
        if segments[:1] != ["v3"]:
            return _not_found()
        if segments == ["v3"] and not is_folder:
            # Upstream lets Go detect the type of this JSON.
            return Response(200, self._openapi.index(), _TEXT)
        found = None if is_folder else self._openapi.version_3("/".join(segments[1:]))
        if found is None:
            return Response(404, b"", "")
        if not any(matches(each.media_type, JSON) for each in parse_accept(request.headers.get("accept") or "*/*")):
            return Response(406, b"", "", [("vary", "Accept")])
        body, tag = found
        wanted = request.query.get("hash", "")
        if wanted and wanted != tag:
            headers = [("etag", f'"{tag}"'), ("vary", "Accept"), ("location", f"{request.path}?hash={tag}")]
            return Response(301, b"", JSON, headers)
        return _cached(request, body, tag, JSON, immutable=bool(wanted))

    def _issuer(self, is_keys: bool, request: Request) -> Response:
        """Return the OpenID configuration of the issuer of service account tokens, or its keys.

        Source: pkg/routes/openidmetadata.go v1.36.3.
        """
        if request.method != "GET":
            raise method_not_allowed()
        media_type = _KEYS if is_keys else JSON
        require_named(request.headers.get("accept", ""), (media_type,), (media_type,))
        cached = [("cache-control", "public, max-age=3600")]
        if is_keys:
            document: Document = {"keys": [self._backend.token_key.public]}
        else:
            document = {
                "issuer": ISSUER,
                "jwks_uri": f"{self._scheme}://{self._address}/{'/'.join(_KEYS_PATH)}",
                "response_types_supported": ["id_token"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": [ALGORITHM],
            }
        return Response(200, msgspec.json.encode(document), media_type, cached)

    def _health(self, name: str, segments: list[str], request: Request) -> Response:
        checks = api_facts().checks[name]
        if len(segments) == 1 and request.path.endswith("/"):
            return _not_found()
        if len(segments) > 1:
            check = "/".join(segments[1:])
            if check not in checks:
                return _not_found()
            self._operators.count(segments[0], (check,))
            return Response(200, b"ok", _TEXT)
        excluded = values_of(request.query, "exclude")
        self._operators.count(segments[0], tuple(each for each in checks if each not in excluded))
        if "verbose" not in request.query:
            return Response(200, b"ok", _TEXT, [_NOT_SNIFFED])
        lines = [f"[+]{each} excluded: ok" if each in excluded else f"[+]{each} ok" for each in checks]
        unknown = [quote(each) for each in sorted(set(excluded)) if each not in checks]
        if unknown:
            lines.append(f"warn: some health checks cannot be excluded: no matches for {','.join(unknown)}")
        return Response(200, "\n".join([*lines, f"{segments[0]} check passed\n"]).encode(), _TEXT, [_NOT_SNIFFED])


def _cached(request: Request, body: bytes, tag: str, media_type: str, *, immutable: bool = False) -> Response:
    """Return a document, or 304 if the client has it. A URL with the document's hash is immutable."""
    headers = [("etag", f'"{tag}"'), ("vary", "Accept")]
    if immutable:
        headers.append(("cache-control", "public, immutable"))
    if request.headers.get("if-none-match") == f'"{tag}"':
        return Response(304, b"", "", headers)
    return Response(200, body, media_type, headers)


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _has_empty_segments(path: str) -> bool:
    """Return whether a path has two slashes in a row, except at the end, where all but `/apis` may have several."""
    return path.startswith(("//", "/apis//")) or "//" in path.rstrip("/")


def _negotiated(document: Document, request: Request) -> Response:
    """Return a discovery document in a format that the client accepts: always complete, never as a table or metadata.

    Raises:
        ApiError: the client accepts no supported format.
    """
    form = plain_form(request.headers.get("accept", ""), pretty=wants_indentation(request.query, request.headers))
    if form is None:
        raise ApiError(406, f"only the following media types are accepted: {', '.join(OBJECT_TYPES)}")
    return Response(200, encode_document(document, form), form.media_type)


def _wants_aggregated(accept: str) -> bool:
    """Return whether a client accepts aggregated discovery, which takes precedence over plain discovery.

    Source: apiserver/pkg/endpoints/discovery/aggregated/negotiation.go v1.36.3.
    """
    for clause in parse_accept(accept):
        wanted = tuple(clause.parameters.get(each) for each in ("g", "v", "as"))
        if wanted == _AGGREGATED and "sv" not in clause.parameters and matches(clause.media_type, JSON):
            return True  # Aggregated discovery is only available as JSON.
    return False


def _openapi_media_type(accept: str) -> str:
    """Return the media type in which to send OpenAPI version 2, or "" if the client accepts none."""
    for clause in parse_accept(accept):
        main, _, form = clause.media_type.partition("/")
        if main in ("application", "*") and form in _OPENAPI_FORMS:
            return _OPENAPI_FORMS[form]
    return ""


def _not_found() -> Response:
    return Response(404, b"404 page not found\n", _TEXT, [_NOT_SNIFFED])
