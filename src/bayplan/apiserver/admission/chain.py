"""Dynamic admission of a write: mutating policies and webhooks, then validating policies and webhooks, in upstream's order.

Compiled hooks are cached until a policy, a binding or a webhook configuration changes. Without any hooks, a write only
compares the versions of six tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from bayplan.apiserver.admission.attributes import CREATE, DELETE, UPDATE, Attributes, GroupVersionKind, Server, kind_of
from bayplan.apiserver.admission.matching import is_exempt, is_never_policed
from bayplan.apiserver.admission.reinvocation import Reinvocation
from bayplan.apiserver.model.errors import ApiError
from bayplan.apiserver.model.requests import DeleteOptions, RequestInfo, WriteOptions
from bayplan.apiserver.model.users import User, component
from bayplan.base.plain_data import Document, part

if TYPE_CHECKING:
    from bayplan.apiserver.admission import mutating_policies, validating_policies
    from bayplan.apiserver.admission.webhooks import Webhook

_GROUP = "admissionregistration.k8s.io"
_TABLES = (
    *(f"{_GROUP}/validatingadmissionpolicies", f"{_GROUP}/validatingadmissionpolicybindings"),
    *(f"{_GROUP}/mutatingadmissionpolicies", f"{_GROUP}/mutatingadmissionpolicybindings"),
    *(f"{_GROUP}/validatingwebhookconfigurations", f"{_GROUP}/mutatingwebhookconfigurations"),
)


class _Hooks(NamedTuple):
    """All hooks of a cluster, compiled."""

    mutating_policies: list[mutating_policies.Policy]
    mutating_webhooks: list[Webhook]
    validating_policies: list[validating_policies.Policy]
    validating_webhooks: list[Webhook]


class Admission:
    """Calls the hooks of a cluster during writes.

    Args:
        server: the server that handles the writes.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._tables = [server.store.table(name) for name in _TABLES]
        self._versions: tuple[int, ...] = ()
        self._hooks = _Hooks([], [], [], [])

    @property
    def is_active(self) -> bool:
        """Whether the cluster has any hooks. Hooks are compiled again if their configuration has changed."""
        versions = tuple([table.version for table in self._tables])
        if versions != self._versions:
            self._hooks = self._compiled()
            self._versions = versions
        return any(self._hooks)

    def _compiled(self) -> _Hooks:
        # Importing CEL is slow, and most clusters have no policies.
        if not any(len(table) for table in self._tables):
            return _Hooks([], [], [], [])
        from bayplan.apiserver.admission import mutating_policies, validating_policies, webhooks

        server = self._server
        return _Hooks(
            mutating_policies.compiled_policies(server),
            webhooks.compiled_webhooks(server, mutating=True),
            validating_policies.compiled_policies(server),
            webhooks.compiled_webhooks(server, mutating=False),
        )

    # --- a request ----------------------------------------------------------------------------------------------------

    def begin(
        self,
        info: RequestInfo,
        options: WriteOptions,
        new: Document,
        old: Document | None,
        read: Callable[[Document], Document],
        *,
        kind: GroupVersionKind | None = None,
    ) -> Attributes:
        """Return the attributes of an update, or of a create if `old` is None.

        Args:
            info: the request.
            options: the options of the write.
            new: the new object, in the API version of the request.
            old: the current object, or None.
            read: decodes an object that a hook has changed, and applies defaults to it.
            kind: the kind of the objects, if it is not the kind of the resource.
        """
        query, resource = options.query, info.resource
        verb = CREATE if old is None else UPDATE
        asked: Document = {"kind": f"{verb.capitalize()}Options", "apiVersion": "meta.k8s.io/v1"}
        if options.dry_run:
            asked["dryRun"] = ["All"]
        asked |= {name: query[name] for name in ("fieldManager", "fieldValidation") if query.get(name)}
        name = info.name or str(part(new, "metadata").get("name") or "")
        return Attributes(
            lister=self._server,
            operation=verb,
            resource=resource,
            subresource=info.subresource,
            namespace=_namespace_of(info, name),
            name=name,
            user=options.user or _user_of(options.manager),
            dry_run=options.dry_run,
            options=asked,
            object=new,
            old=old,
            kind=kind or kind_of(resource, info.subresource),
            read=read,
        )

    def begin_deletion(self, info: RequestInfo, options: DeleteOptions, old: Document, name: str) -> Attributes:
        """Return the attributes of a deletion. The name is empty if the object is deleted as part of a collection."""
        asked: Document = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}
        if options.grace_seconds is not None:
            asked["gracePeriodSeconds"] = options.grace_seconds
        preconditions = {"uid": options.uid, "resourceVersion": options.resource_version}
        if any(preconditions.values()):
            asked["preconditions"] = {name: value for name, value in preconditions.items() if value}
        if options.propagation:
            asked["propagationPolicy"] = options.propagation
        if options.dry_run:
            asked["dryRun"] = ["All"]
        return Attributes(
            lister=self._server,
            operation=DELETE,
            resource=info.resource,
            subresource=info.subresource,
            namespace=_namespace_of(info, name),
            name=name,
            user=options.user or _user_of(""),
            dry_run=options.dry_run,
            options=asked,
            object=None,
            old=old,
            kind=kind_of(info.resource, info.subresource),
            read=lambda document: document,
        )

    def mutate(self, attributes: Attributes, rerun: Callable[[Attributes], None] | None = None) -> bool:
        """Call mutating hooks for the object of a request, and return whether any of them changed it.

        Args:
            attributes: the request; its object is updated.
            rerun: built-in admission, which runs again if hooks changed the object.

        Raises:
            ApiError: a hook denies the request, or fails and its failure policy is Fail.
        """
        if not (self._hooks.mutating_policies or self._hooks.mutating_webhooks) or is_exempt(attributes):
            return False
        again, webhooks_again = Reinvocation(), Reinvocation()
        before = attributes.object
        with _warning(attributes):
            changed = self._mutate_once(attributes, again, webhooks_again)
            if changed:
                again.is_second = webhooks_again.is_second = True
                if rerun is not None:
                    rerun(attributes)
                self._mutate_once(attributes, again, webhooks_again)
        return attributes.object != before

    def _mutate_once(self, attributes: Attributes, again: Reinvocation, webhooks_again: Reinvocation) -> bool:
        from bayplan.apiserver.admission import mutating_policies, webhooks

        changed = False
        if not is_never_policed(attributes):
            again.begin(attributes.object)
            changed = mutating_policies.mutate(self._hooks.mutating_policies, attributes, again)
            again.end(attributes.object)
        webhooks_again.begin(attributes.object)
        changed |= webhooks.mutate(self._hooks.mutating_webhooks, attributes, webhooks_again, self._server.outgoing)
        webhooks_again.end(attributes.object)
        return changed

    def validate(self, attributes: Attributes) -> None:
        """Call validating hooks for a request whose object is complete.

        Raises:
            ApiError: a hook denies the request, or fails and its failure policy is Fail.
        """
        if not (self._hooks.validating_policies or self._hooks.validating_webhooks) or is_exempt(attributes):
            return
        from bayplan.apiserver.admission import validating_policies, webhooks

        with _warning(attributes):
            if not is_never_policed(attributes):
                validating_policies.validate(self._hooks.validating_policies, attributes)
            webhooks.validate(self._hooks.validating_webhooks, attributes, self._server.outgoing)


@contextmanager
def _warning(attributes: Attributes) -> Iterator[None]:
    """Attach the warnings of the request so far to an ApiError raised within the context."""
    try:
        yield
    except ApiError as problem:
        problem.warnings = list(attributes.warnings)
        raise


def _namespace_of(info: RequestInfo, name: str) -> str:
    is_namespace = (info.resource.group, info.resource.name) == ("", "namespaces")
    return name if is_namespace else info.namespace


def _user_of(manager: str) -> User:
    """Return the user of the cluster component with this field manager; kube-controller-manager's if it is empty."""
    if manager == "kubelet":
        return component("system:node")
    return component(f"system:{manager or 'kube-controller-manager'}")
