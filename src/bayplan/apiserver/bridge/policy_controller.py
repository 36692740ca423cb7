"""The controller of ValidatingAdmissionPolicies, which writes warnings about type errors to their status.

Source: pkg/controller/validatingadmissionpolicystatus v1.36.3.
"""

from __future__ import annotations

from bayplan.apiserver.bridge.document_controller import DocumentController
from bayplan.apiserver.bridge.object_writer import ObjectWriter
from bayplan.apiserver.rest.backend import Backend, decode_item
from bayplan.apiserver.store.item import DELETED, Write
from bayplan.apiserver.store.store import Store
from bayplan.base.plain_data import part
from bayplan.controllers.controller import ControllerTools, Enqueue

POLICIES = "admissionregistration.k8s.io/validatingadmissionpolicies"


class PolicyController(DocumentController):
    """Reconciles policies; keys are their names."""

    def __init__(
        self, tools: ControllerTools, documents: Store, writer: ObjectWriter, enqueue: Enqueue, *, backend: Backend
    ) -> None:
        super().__init__(tools, documents, writer, enqueue)
        self._registry = backend.registry

    def begin(self, now_ns: int) -> None:
        """Queue all policies."""
        for item in self.documents.table(POLICIES).items():
            self.enqueue(item.name, now_ns)

    def follow(self, write: Write, now_ns: int) -> None:
        """Queue a new or changed policy."""
        if write.table == POLICIES and write.type != DELETED:
            self.enqueue(write.new.name, now_ns)

    def reconcile(self, key: str, now_ns: int) -> int | None:
        """Check the types in a policy, and update its status.

        Raises:
            WriteRejected: the API rejects the write.
        """
        item = self.documents.get(POLICIES, ("", key))
        if item is None:
            return None
        policy = decode_item(item)
        generation = part(policy, "metadata").get("generation") or 1
        if part(policy, "status").get("observedGeneration") == generation:
            return None
        # Import on demand: the CEL package is slow to import, and most clusters have no policies.
        from bayplan.apiserver.admission.type_checking import expression_warnings

        found = expression_warnings(policy, self._registry)
        checked = {"expressionWarnings": found} if found else {}
        status = {"observedGeneration": generation, "typeChecking": checked}
        self.object_writer.change(POLICIES, ("", key), {"status": status}, "status")
        return None
