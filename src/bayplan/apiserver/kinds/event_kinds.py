"""Strategies of events and leases."""

from __future__ import annotations

from bayplan.apiserver.kinds.strategy import Context, Strategy, part
from bayplan.apiserver.rest.errors import Cause, invalid_value, required
from bayplan.base.plain_data import Document
from bayplan.objects.selectors import quote

_LONGEST_NOTE = 1024
_LONGEST = 128


class EventStrategy(Strategy):
    """Events, of both groups; stored as those of the core group."""

    create_on_update = True
    name_check = "subdomain"

    def validate(self, context: Context, document: Document) -> list[Cause]:
        """Check the namespace, and what the newer group wants beside."""
        causes = self._check_namespace(document)
        if context.resource.group == "":
            return causes
        if not document.get("eventTime"):
            causes.append(required("eventTime"))
        if document.get("type") not in ("Normal", "Warning"):
            kind = str(document.get("type") or "")
            causes.append(invalid_value("type", '""', f"has invalid value: {kind}"))
        if not document.get("eventTime"):
            return causes
        return causes + self._check_new_fields(document)

    def _check_namespace(self, document: Document) -> list[Cause]:
        involved = part(document, "involvedObject")
        namespace, of_event = str(involved.get("namespace") or ""), part(document, "metadata").get("namespace")
        allowed = ("default", "kube-system") if not namespace else (namespace,)
        if of_event in allowed:
            return []
        return [invalid_value("involvedObject.namespace", quote(namespace), "does not match event.namespace")]

    def _check_new_fields(self, document: Document) -> list[Cause]:
        causes: list[Cause] = []
        for field in ("reportingComponent", "reportingInstance", "action", "reason"):
            name = "reportingController" if field == "reportingComponent" else field
            value = str(document.get(field) or "")
            if not value:
                causes.append(required(name))
            elif len(value) > _LONGEST:
                causes.append(invalid_value(name, '""', f"can have at most {_LONGEST} characters"))
        if len(str(document.get("message") or "")) > _LONGEST_NOTE:
            causes.append(invalid_value("message", '""', f"can have at most {_LONGEST_NOTE} characters"))
        return causes

    def validate_update(self, context: Context, new: Document, old: Document) -> list[Cause]:
        """Check nothing but the namespace: series and counts move."""
        return self._check_namespace(new)


class LeaseStrategy(Strategy):
    """Leases: an update names its version, and one of what is not there creates it."""

    create_on_update = True
    unconditional_update = False

    def validate(self, context: Context, document: Document) -> list[Cause]:
        """Check numbers."""
        spec = part(document, "spec")
        causes: list[Cause] = []
        seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
        if isinstance(seconds, int) and seconds <= 0:
            causes.append(invalid_value("spec.leaseDurationSeconds", str(seconds), "must be greater than 0"))
        if isinstance(transitions, int) and transitions < 0:
            causes.append(
                invalid_value("spec.leaseTransitions", str(transitions), "must be greater than or equal to 0")
            )
        return causes
