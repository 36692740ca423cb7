"""Validation rules of events, for both the core group and events.k8s.io."""

from __future__ import annotations

from bayplan.apiserver.model.errors import Cause, invalid_value, required
from bayplan.apiserver.model.object_meta import check_metadata
from bayplan.apiserver.validation.engine import Causes, immutable
from bayplan.apiserver.validation.formats import dns_subdomain, qualified_name
from bayplan.apiserver.validation.internal_json import shown_as
from bayplan.base.plain_data import Document, part
from bayplan.objects.selectors import quote

_MAX_NOTE, _MAX_TEXT = 1024, 128
_ZEROS: Document = {"count": 0, "reason": "", "message": "", "type": "", "action": ""}
_STAYS = tuple(
    immutable(name, show=shown_as(f"core.{kind}")) if kind else immutable(name, zero=_ZEROS.get(name))
    for name, kind in (
        ("involvedObject", "ObjectReference"), ("reason", ""), ("message", ""), ("source", "EventSource"),
        ("firstTimestamp", ""), ("lastTimestamp", ""), ("count", ""), ("reason", ""), ("type", ""), ("eventTime", ""),
        ("action", ""), ("related", "*ObjectReference"),
    )
)  # fmt: skip


def _check_any(event: Document, causes: Causes, *, is_core: bool) -> None:
    """Check the fields that events of both groups share."""
    namespace = str(part(event, "involvedObject").get("namespace") or "")
    of_event = str(part(event, "metadata").get("namespace") or "")
    old = not event.get("eventTime")
    allowed = (namespace,) if namespace and old else ("", "default") if old else ("default", "kube-system")
    if of_event not in allowed and (old or not namespace):
        detail = "does not match event.namespace"
        causes.append(invalid_value("involvedObject.namespace", quote(namespace), detail))
    if not old:
        _check_new_fields(event, causes, "reportingComponent" if is_core else "reportingController")
    dns_subdomain(of_event, "namespace", causes)


def _check_new_fields(event: Document, causes: Causes, controller: str) -> None:
    for name in ("reportingComponent", "reportingInstance", "action", "reason"):
        text = str(event.get(name) or "")
        field = controller if name == "reportingComponent" else name
        if not text:
            causes.append(required(field))
        if name == "reportingComponent":
            qualified_name(text, field, causes)
        elif len(text.encode()) > _MAX_TEXT:
            causes.append(invalid_value(field, '""', f"can have at most {_MAX_TEXT} characters"))
    if len(str(event.get("message") or "").encode()) > _MAX_NOTE:
        causes.append(invalid_value("message", '""', f"can have at most {_MAX_NOTE} characters"))


def _check_series(event: Document, causes: Causes) -> None:
    series = event.get("series")
    if not isinstance(series, dict):
        return
    count = series.get("count", 0)
    if not isinstance(count, int) or count < 2:
        causes.append(invalid_value("series.count", '""', "should be at least 2"))
    if not series.get("lastObservedTime"):
        causes.append(required("series.lastObservedTime"))


def check_event(event: Document, *, is_core: bool) -> list[Cause]:
    """Return the errors of a new event.

    Args:
        event: the event in its stored form, with the field names of the core group.
        is_core: whether the request is for the core group, whose rules are less strict.
    """
    causes: list[Cause] = []
    _check_any(event, causes, is_core=is_core)
    if is_core:
        return causes
    causes += check_metadata(part(event, "metadata"), True, "subdomain", standard=True)
    _check_series(event, causes)
    if not event.get("eventTime"):
        causes.append(required("eventTime"))
    if event.get("type") not in ("Normal", "Warning"):
        causes.append(invalid_value("type", '""', f"has invalid value: {event.get('type') or ''}"))
    for name in ("firstTimestamp", "lastTimestamp", "count"):
        if event.get(name):
            causes.append(invalid_value(name, '""', "needs to be unset"))
    if any(part(event, "source").get(name) for name in ("component", "host")):
        causes.append(invalid_value("source", '""', "needs to be unset"))
    return causes


def check_event_update(new: Document, old: Document, *, is_core: bool) -> list[Cause]:
    """Return the errors of an updated event."""
    causes: list[Cause] = []
    _check_any(new, causes, is_core=is_core)
    if is_core:
        return causes
    if new.get("series") != old.get("series"):
        _check_series(new, causes)
    for check in _STAYS:
        check(new, old, causes)
    for name, field in (("reportingComponent", "reportingController"), ("reportingInstance", "reportingInstance")):
        if (new.get(name) or "") != (old.get(name) or ""):
            causes.append(invalid_value(field, quote(str(new.get(name) or "")), "field is immutable"))
    return causes
