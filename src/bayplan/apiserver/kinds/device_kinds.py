"""Strategies of device classes, resource claims, claim templates and resource slices."""

from __future__ import annotations

from bayplan.apiserver.kinds.strategy import Context, Strategy
from bayplan.apiserver.model.errors import Cause, forbidden_value
from bayplan.base.plain_data import Document, part, parts

_ADMIN = "resource.kubernetes.io/admin-access"


class DeviceStrategy(Strategy):
    """Device classes, resource claims, and claim templates."""

    returns_deleted = True
    keeps_metadata_of_status = True

    def __init__(self, *, counts_generations: bool = False, name_check: str = "subdomain") -> None:
        self.counts_generations = counts_generations
        self.name_check = name_check

    def prepare_status(self, context: Context, new: Document, old: Document) -> None:
        """Restore everything except the status, and drop the status of devices that are no longer allocated."""
        super().prepare_status(context, new, old)
        status, before = part(new, "status"), part(old, "status")
        gone = [each for each in _allocated(before) if each not in _allocated(status)]
        if gone and parts(status, "devices"):
            status["devices"] = [each for each in parts(status, "devices") if _device(each) not in gone]
            if not status["devices"]:
                del status["devices"]

    def validate(self, context: Context, document: Document) -> list[Cause]:
        """Return the errors of a new object. Admin access requires a label on the namespace."""
        causes = super().validate(context, document)
        spec = part(document, "spec")
        requests = parts(part(spec, "devices") or part(spec, "spec", "devices"), "requests")
        asked = [index for index, each in enumerate(requests) if part(each, "exactly").get("adminAccess")]
        namespace = context.cluster.find("namespaces", "", context.namespace) if asked else None
        if namespace is not None and part(namespace, "metadata", "labels").get(_ADMIN) == "true":
            return causes
        text = f"admin access to devices requires the `{_ADMIN}: true` label on the containing namespace"
        return [forbidden_value(f"spec.devices.requests[{index}].adminAccess", text) for index in asked] + causes


def _device(document: Document) -> tuple[object, ...]:
    return tuple(document.get(name) or "" for name in ("driver", "pool", "device", "shareID"))


def _allocated(status: Document) -> list[tuple[object, ...]]:
    return [_device(each) for each in parts(part(status, "allocation", "devices"), "results")]


class DeviceSliceStrategy(Strategy):
    """Resource slices: the server sets the time at which each taint was added."""

    counts_generations = True
    returns_deleted = True

    def prepare_create(self, context: Context, document: Document) -> None:
        """Set `timeAdded` of the taints that have none to the current time."""
        super().prepare_create(context, document)
        _date_taints(context, document)

    def prepare_update(self, context: Context, new: Document, old: Document) -> None:
        """Set `timeAdded` of the taints that have none to the current time."""
        _date_taints(context, new)
        super().prepare_update(context, new, old)


def _date_taints(context: Context, document: Document) -> None:
    for device in parts(part(document, "spec"), "devices"):
        for taint in parts(device, "taints"):
            if taint.get("timeAdded") is None:
                taint["timeAdded"] = context.cluster.now()
