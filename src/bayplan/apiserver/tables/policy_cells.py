"""The rows of less common kinds: certificates, flow control, admission policies, revisions, templates."""

from __future__ import annotations

from bayplan.apiserver.tables.ages import human_duration
from bayplan.apiserver.tables.metadata_cells import age_of, name_of
from bayplan.base.plain_data import Document, part, parts

_NONE, _UNSET = "<none>", "<unset>"


def signing_request(item: Document, now: float) -> list[object]:
    """Return the cells of a CertificateSigningRequest."""
    spec, status = part(item, "spec"), part(item, "status")
    types = [each.get("type") for each in parts(status, "conditions")]
    state = "Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"
    state += ",Failed" * ("Failed" in types) + ",Issued" * bool(status.get("certificate"))
    seconds = spec.get("expirationSeconds")
    wanted = human_duration(seconds) if isinstance(seconds, int) else _NONE
    return [
        name_of(item),
        age_of(item, now),
        spec.get("signerName") or _NONE,
        spec.get("username") or "",
        wanted,
        state,
    ]


def controller_revision(item: Document, now: float) -> list[object]:
    """Return the cells of a ControllerRevision."""
    shown = _NONE
    for owner in parts(part(item, "metadata"), "ownerReferences"):
        if owner.get("controller"):
            group = str(owner.get("apiVersion") or "").rpartition("/")[0]
            kind = str(owner.get("kind") or "").lower()
            shown = f"{kind}.{group}/{owner.get('name')}" if group else f"{kind}/{owner.get('name')}"
            break
    return [name_of(item), shown, item.get("revision", 0), age_of(item, now)]


def flow_schema(item: Document, now: float) -> list[object]:
    """Return the cells of a FlowSchema."""
    spec = part(item, "spec")
    conditions = parts(part(item, "status"), "conditions")
    dangling = next((each.get("status") for each in conditions if each.get("type") == "Dangling"), "?")
    level = part(spec, "priorityLevelConfiguration").get("name")
    method = part(spec, "distinguisherMethod").get("type") or _NONE
    return [name_of(item), level, spec.get("matchingPrecedence", 0), method, age_of(item, now), dangling]


def priority_level(item: Document, now: float) -> list[object]:
    """Return the cells of a PriorityLevelConfiguration."""
    spec = part(item, "spec")
    limited, queuing = part(spec, "limited"), part(spec, "limited", "limitResponse", "queuing")
    queues = [queuing.get(name, 0) if queuing else _NONE for name in ("queues", "handSize", "queueLengthLimit")]
    shares = limited.get("nominalConcurrencyShares", 0) if limited else _NONE
    return [name_of(item), spec.get("type"), shares, *queues, age_of(item, now)]


def pod_template(item: Document, now: float) -> list[object]:
    """Return the cells of a PodTemplate."""
    template = part(item, "template")
    containers = parts(part(template, "spec"), "containers")
    lists = [",".join(str(each.get(name)) for each in containers) for name in ("name", "image")]
    labels = part(template, "metadata", "labels")
    return [name_of(item), *lists, ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or _NONE]


def attributes_class(item: Document, now: float) -> list[object]:
    """Return the cells of a VolumeAttributesClass."""
    return [name_of(item), item.get("driverName"), age_of(item, now)]


def validating_policy(item: Document, now: float) -> list[object]:
    """Return the cells of a ValidatingAdmissionPolicy."""
    return _policy(item, "validations", now)


def mutating_policy(item: Document, now: float) -> list[object]:
    """Return the cells of a MutatingAdmissionPolicy."""
    return _policy(item, "mutations", now)


def _policy(item: Document, counted: str, now: float) -> list[object]:
    spec = part(item, "spec")
    kind = part(spec, "paramKind")
    shown = f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else _UNSET
    return [name_of(item), len(parts(spec, counted)), shown, age_of(item, now)]


def policy_binding(item: Document, now: float) -> list[object]:
    """Return the cells of an admission policy's binding."""
    spec = part(item, "spec")
    reference, shown = part(spec, "paramRef"), _UNSET
    if reference.get("name"):
        shown = f"{reference.get('namespace') or '*'}/{reference['name']}"
    elif isinstance(reference.get("selector"), dict):
        shown = _go_selector(part(reference, "selector"))
    return [name_of(item), spec.get("policyName") or "", shown, age_of(item, now)]


def _go_selector(selector: Document) -> str:
    """Return a label selector as Go prints the struct."""
    labels = " ".join(f"{key}:{value}" for key, value in sorted(part(selector, "matchLabels").items()))
    requirements = "".join(
        f"LabelSelectorRequirement{{Key:{each.get('key')},Operator:{each.get('operator')},"
        f"Values:[{' '.join(str(value) for value in _values(each))}],}},"
        for each in parts(selector, "matchExpressions")
    )
    listed = f"[]LabelSelectorRequirement{{{requirements}}}"
    return f"&LabelSelector{{MatchLabels:map[string]string{{{_pairs(labels)}}},MatchExpressions:{listed},}}"


def _values(requirement: Document) -> list[object]:
    found = requirement.get("values")
    return found if isinstance(found, list) else []


def _pairs(labels: str) -> str:
    return "".join(f"{each.replace(':', ': ', 1)}," for each in labels.split(" ") if each)
