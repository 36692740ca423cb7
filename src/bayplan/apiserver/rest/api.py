"""The entry point of the REST API: one function from a request to a response or a stream, independent of sockets.

This module determines the verb, calls the module that implements it, and encodes the result in a format that the client
accepts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from msgspec.structs import replace

from bayplan.apiserver.admission.outgoing import MAX_ATTEMPTS, Call, CallsNeededError, Session, awaits_answers
from bayplan.apiserver.kinds.conversion import is_converted
from bayplan.apiserver.model.errors import ApiError, bad_request, internal_error, not_found, object_details
from bayplan.apiserver.model.requests import ListOptions, RequestInfo
from bayplan.apiserver.rest import (
    component_statuses,
    deleting,
    listing,
    metrics_endpoints,
    operator_endpoints,
    patching,
    rendering,
    reviews,
    running_pods,
    scaling,
    subresources,
    updates,
    writing,
)
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.body_types import target_of
from bayplan.apiserver.rest.decoding import decode_request, read_ahead
from bayplan.apiserver.rest.messages import Request, Response, Route, Stream
from bayplan.apiserver.rest.meta_endpoints import MetaEndpoints
from bayplan.apiserver.rest.negotiation import (
    JSON,
    OBJECT_TYPES,
    PLAIN,
    PROTOBUF,
    Form,
    error_form,
    input_type,
    negotiate,
    wants_indentation,
)
from bayplan.apiserver.rest.options import (
    EXACT,
    check_timeout,
    delete_options,
    list_options,
    read_bool,
    read_revision,
    request_timeout,
    write_options,
)
from bayplan.apiserver.rest.paths import OF_RUNNING_PODS, check_name, is_long_running, resolve, split_path
from bayplan.apiserver.rest.pod_template_cache import PodTemplateCache
from bayplan.apiserver.rest.reaching import reaches
from bayplan.apiserver.rest.selection import selection
from bayplan.apiserver.rest.service_tokens import create_token
from bayplan.apiserver.rest.warning_headers import delete_warnings, deprecation_warning, warning_headers
from bayplan.apiserver.rest.watching import Watch
from bayplan.apiserver.tables.table import scale_table
from bayplan.base.plain_data import Document, part
from bayplan.objects.selectors import quote

_NOT_NEGOTIATED = (406, 415)
"""Status codes of failed content negotiation. Upstream's framework reports them before it adds a deprecation warning."""
_MAX_BINARY_ITEMS = 500
"""Most items of a list in protobuf, if the client also accepts JSON, which is stored ready to send. A pod takes about 0.1 ms."""
_NOT_CACHED = ("events",)
"""Tables that upstream's watch cache leaves out."""
_REVIEW_GROUPS = ("authentication.k8s.io", "authorization.k8s.io")
_VIRTUAL = ("binding", "eviction", "token")
_WITHOUT_TABLES = frozenset(
    (
        *(("pods", name) for name in ("log", "resize", "ephemeralcontainers")),
        ("namespaces", "finalize"),
        ("apiextensions.k8s.io/customresourcedefinitions", "status"),
        ("apiregistration.k8s.io/apiservices", "status"),
        ("certificates.k8s.io/certificatesigningrequests", "approval"),
        ("resource.k8s.io/resourceclaims", "status"),
    )
)
"""Tables and subresources that upstream does not convert to tables."""


class Calls(Protocol):
    """Makes HTTP calls to webhooks."""

    async def make(self, session: Session, calls: Sequence[Call]) -> None:
        """Make the calls in parallel, and store the responses in the session for the next attempt of the request."""


def _is_virtual(info: RequestInfo) -> bool:
    """Return whether objects are only created, never stored. They have no tables."""
    return info.resource.group in _REVIEW_GROUPS or info.resource.name == "bindings" or info.subresource in _VIRTUAL


def _negotiate(info: RequestInfo, request: Request, *, json_first: bool = False) -> Form:
    return negotiate(
        request.headers.get("accept", ""),
        is_list=info.verb in ("list", "watch"),
        tables=not _is_virtual(info) and (info.resource.table, info.subresource) not in _WITHOUT_TABLES,
        json_first=json_first,
        untyped=info.resource.custom is not None,
        pretty=wants_indentation(request.query, request.headers),
    )


class Api:
    """The REST API of a backend.

    Args:
        backend: the store and the state that all verbs share.
        address: the server address that discovery reports to clients.
        scheme: the scheme of the server's URL.

    Attributes:
        calls: the client that calls webhooks; None without a server, and then requests that need a call fail.
    """

    def __init__(self, backend: Backend, *, address: str = "apiserver", scheme: str = "https") -> None:
        self.backend = backend
        self._meta = MetaEndpoints(backend, address, scheme)
        self._pod_templates = PodTemplateCache(backend)
        self._metrics = metrics_endpoints.MetricsEndpoints(backend)
        self.calls: Calls | None = None

    async def handle(self, request: Request) -> Response | Stream:
        """Return the response, or the stream of a watch. Errors are responses, too: an exception is a bug."""
        try:
            route = request.route
            if route is not None and route.changes == self.backend.registry.changes:
                return await self._perform(route, request)
            path = split_path(request.path)
            timeout = request.query.get("timeout", "")
            if timeout and (path is None or not is_long_running(request, path[2])):
                check_timeout(timeout)
            if path is None or not path[2]:
                return self._meta.handle(request)
            group, version, rest = path
            if rest in (["watch"], ["proxy"]):
                why = f"failed to create RequestInfo: unable to determine kind and namespace from url, {request.path}"
                text = f'Internal Server Error: "{request.path}": {why}\n'
                return Response(
                    500, text.encode(), "text/plain; charset=utf-8", [("x-content-type-options", "nosniff")]
                )
            if group == metrics_endpoints.GROUP and group in self.backend.registry.groups:
                return self._metrics.handle(request, rest)
            if (group, version) not in self.backend.registry.versions:
                return self._meta.handle(request)
            try:
                info = resolve(self.backend.registry, request, group, version, rest)
            except ApiError as problem:
                if problem.code == 404 and not problem.details and self.backend.registry.is_custom(group):
                    return self._meta.handle(request)
                raise
            deprecated = deprecation_warning(info)
            if not deprecated:
                request.route = self._route(info, request)
                return await self._perform(request.route, request)
            try:
                response = await self._perform(self._route(info, request), request)
            except ApiError as problem:
                response = self._error(request, problem)
                if problem.code in _NOT_NEGOTIATED and problem.details is not None:
                    return response  # Upstream's HTTP framework refuses the request before the handler warns.
            response.headers[:0] = warning_headers([deprecated])
            return response
        except ApiError as problem:
            return self._error(request, problem)
        except RecursionError:
            # Nothing has been stored yet. Decoding already rejects objects of more than 10,000 levels, which is
            # upstream's limit.
            return self._error(request, bad_request("the object is nested too deeply"))

    def _route(self, info: RequestInfo, request: Request) -> Route:
        """Return the route of a request; raise ApiError if its query or Accept header is invalid."""
        if info.subresource in OF_RUNNING_PODS and info.subresource != "log":
            return Route(self.backend.registry.changes, info, PLAIN)
        if info.verb == "patch":
            if info.resource.custom is None:
                patching.check_patch_type(request)
            else:
                patching.patch_type(request, custom=True)
        return Route(self.backend.registry.changes, info, _negotiate(info, request))

    async def _perform(self, route: Route, request: Request) -> Response | Stream:
        info, form = route.info, route.form
        if info.verb in ("list", "watch", "get") and not info.subresource:
            if info.resource.converter is not None and self.backend.outgoing.is_on:
                await self._convert(info)
            return self._watch(info, request) if info.verb == "watch" else await self._read(info, request, form)
        if info.subresource in OF_RUNNING_PODS:
            return running_pods.answer(self.backend, info, request)
        if info.verb == "get":
            await self._reach_get(info, request)
        await read_ahead(request)
        if not self.backend.outgoing.is_on:
            return self._write(route, request)
        if not request.waits:
            try:
                return self._write(route, request)
            except CallsNeededError as needed:
                raise awaits_answers(needed) from None
        return await self._write_with_calls(route, request)

    async def _convert(self, info: RequestInfo) -> None:
        """Convert all objects that a read may return in advance, so that the read itself need not wait for a webhook.

        Raises:
            ApiError: a conversion webhook fails.
        """
        backend, resource, key = self.backend, info.resource, (info.namespace, info.name)
        session = backend.begin_session()
        for _ in range(MAX_ATTEMPTS):
            try:
                with backend.outgoing.attempt(session, backend):
                    one = backend.store.get(resource.table, key) if info.name else None
                    for item in (one,) if info.name else list(backend.store.table(resource.table).items()):
                        if item is not None:
                            backend.document(resource, item)
                    return
            except CallsNeededError as needed:
                await self._make(session, needed)

    async def _make(self, session: Session, needed: CallsNeededError) -> None:
        if self.calls is None:
            raise internal_error("this server makes no calls")
        await self.calls.make(session, needed.calls)

    async def _write_with_calls(self, route: Route, request: Request) -> Response:
        """Repeat a write until all webhooks that it needs have responded. Earlier attempts store nothing."""
        outgoing, session = self.backend.outgoing, self.backend.begin_session()
        for _ in range(MAX_ATTEMPTS):
            try:
                with outgoing.attempt(session, self.backend):
                    return self._write(route, request)
            except CallsNeededError as needed:
                await self._make(session, needed)
        raise ApiError(504, "Timeout: request did not complete within requested timeout", details={})

    def _write(self, route: Route, request: Request) -> Response:
        info, form = route.info, route.form
        if info.verb == "create":
            return self._create(route, request)
        if info.subresource == "scale":
            return self._scale(info, request, form)
        if info.verb == "get":
            check_name(info.name)
            return self._get(info, request, form)
        if info.verb == "update":
            return self._update(info, request, form)
        if info.verb == "patch":
            return self._written(info, patching.patch(self.backend, info, request), request, form)
        return self._delete(info, request, form)

    # --- reads --------------------------------------------------------------------------------------------------------

    def _watch(self, info: RequestInfo, request: Request) -> Stream:
        resource = info.resource
        if "watch" not in resource.facts.verbs:
            text = f"watch is not supported on resources of kind {quote(resource.name)}"
            raise ApiError(405, text, details=object_details("", resource.group, resource.name))
        options = list_options(request.query, watch=True)
        chosen = selection(info, options)
        read_revision(request.query.get("resourceVersion", ""))
        # Upstream negotiates a watch twice: as an object, like other requests, and here as a stream.
        untyped = resource.custom is not None
        form = negotiate(request.headers.get("accept", ""), stream=True, is_list=True, json_first=True, untyped=untyped)
        include = rendering.included(request.query, form)
        timeout = 0.0 if options.timeout_seconds else request_timeout(request.query.get("timeout", ""))
        watch = Watch(self.backend, info, options, chosen, form, timeout, include)
        media_type = f"{PROTOBUF};stream=watch" if form.media_type == PROTOBUF else JSON
        return Stream(watch.frames(), media_type, watch.cut_off)

    async def _read(self, info: RequestInfo, request: Request, form: Form) -> Response:
        if info.verb == "get":
            if info.resource.table != component_statuses.TABLE:
                check_name(info.name)
            await self._reach_get(info, request)
            return self._get(info, request, form)
        options = list_options(request.query, watch=False)
        include = rendering.included(request.query, form)
        chosen = selection(info, options)
        listing.check_revision(request.query)
        await self._reach(info, options)
        page = listing.list_items(self.backend, info, options, chosen)
        if form.media_type == PROTOBUF and len(page.items) > _MAX_BINARY_ITEMS:
            form = _negotiate(info, request, json_first=True)
        body = rendering.render_page(self.backend, info, page, form, include)
        return Response(200, body, form.media_type, revision=page.revision)

    async def _reach_get(self, info: RequestInfo, request: Request) -> None:
        """Check the options of a get, and wait until the store has its revision.

        Raises:
            ApiError: an option is invalid, or the store does not reach the revision in time.
        """
        if "export" in request.query and read_bool(request.query, "export") is not False:
            raise bad_request("the export parameter, deprecated since v1.14, is no longer supported")
        if info.resource.table in _NOT_CACHED:
            listing.check_revision(request.query)
        wanted = read_revision(request.query.get("resourceVersion", ""))
        await self._reach(info, ListOptions(resource_version=wanted))

    async def _reach(self, info: RequestInfo, options: ListOptions) -> None:
        """Wait until the store has the revision that a list or get requests.

        Raises:
            ApiError: the store does not reach the revision within `WAIT_FOR_REVISION` seconds.
        """
        if not listing.is_ahead(self.backend, options):
            return
        if info.resource.table in _NOT_CACHED:
            raise listing.too_large(options.resource_version or 0, self.backend.store.revision, retry=False)
        wanted = options.resource_version or 0
        if not await reaches(self.backend, wanted):
            raise listing.too_large(wanted, self.backend.store.revision)

    def _get(self, info: RequestInfo, request: Request, form: Form) -> Response:
        resource = info.resource
        if info.subresource not in ("", "status", "approval", "resize", "ephemeralcontainers"):
            raise ApiError(405, "the server does not allow this method on the requested resource", details={})
        if resource.table == component_statuses.TABLE:
            item = next(
                (each for each in component_statuses.component_items(self.backend) if each.name == info.name), None
            )
        else:
            item = self.backend.store.get(resource.table, (info.namespace, info.name))
        if item is None:
            # Upstream's message names only this resource in the singular.
            name = "componentstatus" if resource.name == "componentstatuses" else resource.name
            raise not_found(name, resource.group, info.name)
        rendering.reject_list_form(resource, form)
        include = rendering.included(request.query, form)
        body = rendering.render_item(self.backend, resource, item, form, include)
        return Response(200, body, form.media_type, revision=item.revision)

    # --- writes -------------------------------------------------------------------------------------------------------

    def _create(self, route: Route, request: Request) -> Response:
        info, form = route.info, route.form
        resource = info.resource
        if route.create_options is None:
            input_type(request.headers.get("content-type", ""))  # Upstream checks it before the options.
        if resource.name == "bindings" or info.subresource == "binding":
            return self._respond(201, subresources.bind(self.backend, info, request), form, request.warnings)
        if info.subresource == "eviction":
            return self._respond(201, subresources.evict(self.backend, info, request), form, request.warnings)
        if info.subresource == "token":
            return self._created(info, create_token(self.backend, info, request), form, request.warnings)
        if resource.group in _REVIEW_GROUPS:
            return self._created(info, reviews.review(self.backend, info, request), form, request.warnings)
        if info.subresource:
            raise ApiError(405, "the server does not allow this method on the requested resource", details={})
        options = route.create_options
        if options is None:
            options = route.create_options = write_options(request, "CreateOptions")
        # Service account admission adds a volume with a random name to each pod, so their specs differ.
        alike = not self.backend.admission.is_active and not self.backend.admits_service_accounts
        is_pod = resource.table == "pods" and not form.kind and alike
        sent = self._pod_templates.read(request) if is_pod else None
        if sent is not None:
            item = self._pod_templates.create(info, sent, options)
            if item is not None:
                body = rendering.render_item(self.backend, resource, item, form)
                return Response(201, body, form.media_type, revision=item.revision)
        decoded = decode_request(target_of(resource), request, options.validation)
        written = writing.create(self.backend, info, decoded.document, options)
        written.warnings = [*decoded.warnings, *written.warnings]
        if sent is not None:
            self._pod_templates.add(info, sent, written)
        return self._written(info, written, request, form)

    def _update(self, info: RequestInfo, request: Request, form: Form) -> Response:
        options = write_options(request, "UpdateOptions")
        decoded = decode_request(target_of(info.resource, info.subresource), request, options.validation)
        written = updates.update(self.backend, info, decoded.document, options)
        written.warnings = [*decoded.warnings, *written.warnings]
        return self._written(info, written, request, form)

    def _scale(self, info: RequestInfo, request: Request, form: Form) -> Response:
        check_name(info.name)
        is_read = info.verb == "get"
        scaled = scaling.read_scale(self.backend, info) if is_read else scaling.write_scale(self.backend, info, request)
        rendering.reject_list_form(info.resource, form, is_scale=True)
        if form.kind == "Table":
            include = rendering.included(request.query, form)
            custom = info.resource.custom is not None
            scaled = scale_table(scaled, form.version, include, self.backend.clock(), custom=custom)
        elif form.kind:
            scaled = rendering.metadata_only(scaled, form.version)
        return self._respond(200, scaled, form, request.warnings)

    def _delete(self, info: RequestInfo, request: Request, form: Form) -> Response:
        if info.verb == "deletecollection":
            return self._delete_collection(info, request, form)
        options = delete_options(request)
        warnings = delete_warnings(self.backend, info, options)
        try:
            check_name(info.name)
            deleted = deleting.delete(self.backend, info, options)
        except ApiError as problem:
            response = self._error(request, problem)
            response.headers += warning_headers(warnings)
            return response
        warnings += options.warnings
        resource = info.resource
        if deleted.removed and not deleted.is_zero and not self.backend.strategy(resource).returns_deleted:
            details = object_details(info.name, resource.group, resource.name)
            details["uid"] = part(deleted.document, "metadata").get("uid")
            return self._respond(200, {**subresources.SUCCESS, "details": details}, form, warnings)
        include = rendering.included(request.query, form)
        rendering.reject_list_form(resource, form)
        document = rendering.render_document(self.backend, resource, deleted.document, form, include)
        status = 202 if not deleted.removed and options.orphan is False else 200
        return self._respond(status, document, form, warnings)

    def _delete_collection(self, info: RequestInfo, request: Request, form: Form) -> Response:
        options = list_options(request.query, watch=False)
        chosen = selection(info, options)  # Upstream checks the selectors before it reads the body.
        if options.resource_version and not options.match and not chosen.is_single(info.resource):
            # Upstream lists in pages, and the revision of a page is exact.
            options = replace(options, match=EXACT)
        deletion = delete_options(request)
        warnings, refusal, body = delete_warnings(self.backend, info, deletion), None, b""
        try:
            listing.check_revision(request.query)
            if listing.is_ahead(self.backend, options):
                raise listing.too_large(options.resource_version or 0, self.backend.store.revision)
            page = listing.list_items(self.backend, info, options, chosen)
            if is_converted(info.resource):
                # A webhook may have to convert the objects. The request is repeated then, so nothing may be deleted yet.
                for item in page.items:
                    self.backend.document(info.resource, item)
            try:
                include = rendering.included(request.query, form)
                body = rendering.render_page(self.backend, info, page, form, include)
            except ApiError as problem:
                refusal = problem
            deleting.delete_collection(self.backend, info, page.items, deletion)
            if refusal is not None:
                raise refusal  # As in upstream, a list that can't be sent is refused after the deletion.
        except ApiError as problem:
            problem.warnings[:0] = warnings
            raise
        headers = warning_headers(warnings)
        return Response(200, body, form.media_type, headers, self.backend.store.revision)

    def _written(self, info: RequestInfo, written: writing.Written, request: Request, form: Form) -> Response:
        status = 201 if written.created else 200
        if written.item is not None and form is PLAIN:
            body = rendering.render_item(self.backend, info.resource, written.item, form)
            response = Response(status, body, form.media_type, revision=self.backend.store.revision)
        else:
            try:
                rendering.reject_list_form(info.resource, form)
                include = rendering.included(request.query, form)
                document = rendering.render_document(self.backend, info.resource, written.document, form, include)
            except ApiError as problem:
                problem.warnings[:0] = [each for each in written.warnings if each not in request.warnings]
                raise
            response = self._respond(status, document, form)
        response.headers += warning_headers(written.warnings)
        return response

    def _created(self, info: RequestInfo, document: Document, form: Form, warnings: Iterable[str] = ()) -> Response:
        """Return the response to the create of an object that is not stored."""
        rendering.reject_list_form(info.resource, form)
        if form.kind:
            document = rendering.metadata_only(document, form.version)
        return self._respond(201, document, form, warnings)

    def _respond(self, status: int, document: Document, form: Form, warnings: Iterable[str] = ()) -> Response:
        body = rendering.encode_document(document, form)
        headers = warning_headers(warnings)
        return Response(status, body, form.media_type, headers, self.backend.store.revision)

    def _error(self, request: Request, problem: ApiError) -> Response:
        pretty = wants_indentation(request.query, request.headers)
        offered = operator_endpoints.ERROR_TYPES if request.path in operator_endpoints.KINDS else OBJECT_TYPES
        form = error_form(request.headers.get("accept", ""), pretty=pretty, offered=offered)
        body = rendering.render_error(problem, form)
        headers = [*problem.headers.items(), *warning_headers([*request.warnings, *problem.warnings])]
        return Response(problem.code, body, form.media_type, headers, self.backend.store.revision)
