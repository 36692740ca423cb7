"""The status of CustomResourceDefinitions, which kube-apiserver's own controllers write: accepted names, and deletion.

Source: the controllers status and finalizer of apiextensions-apiserver, v1.36.3.
"""

from __future__ import annotations

from functools import partial

from bayplan.apiserver.kinds.accepted_names import AcceptedNames, kind_name, resource_name
from bayplan.apiserver.kinds.conditions import has_condition, with_condition
from bayplan.apiserver.kinds.default_functions import stored_versions
from bayplan.apiserver.validation.definitions import approval, is_protected_group
from bayplan.base.plain_data import Document, part, parts, texts
from bayplan.objects.selectors import quote

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""Finalizer of a deleted definition, which stays until its objects are gone."""


def accepted_status(definition: Document, now: str, names: AcceptedNames) -> Document | None:
    """Return the status of a definition after its names were compared with accepted names, or None if it does not change.

    Args:
        definition: the definition.
        now: the current time.
        names: the accepted names of all definitions. A name of another definition of the group is not accepted.
    """
    status = part(definition, "status")
    accepted, conflict = _accepted_names(definition, names)
    if conflict is None:
        names_accepted = _condition("NamesAccepted", "NoConflicts", "no conflicts found", now)
    else:
        names_accepted = {**_condition("NamesAccepted", *conflict, now), "status": "False"}
    before: Document = {str(each.get("type")): each for each in parts(status, "conditions")}
    established = before.get("Established")
    if not isinstance(established, dict) or (conflict is None and established.get("status") != "True"):
        established = _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", now)
        if conflict is not None:
            established = {
                **_condition("Established", "NotAccepted", "not all names are accepted", now),
                "status": "False",
            }
    conditions = (*_approval(definition, now), names_accepted, established)
    changed = [each for each in conditions if not _is_same(part(before, str(each["type"])), each)]
    if not changed and part(status, "acceptedNames") == accepted:
        return None
    for each in changed:
        status = with_condition(status, each)
    stored = texts(status, "storedVersions") or stored_versions(definition)
    return {**status, "acceptedNames": accepted, "storedVersions": stored}


def _approval(definition: Document, now: str) -> tuple[Document, ...]:
    """Return the condition of a definition in a group of the Kubernetes community, which needs an approval."""
    if not is_protected_group(str(part(definition, "spec").get("group") or "")):
        return ()
    state, message = approval(definition)
    condition = _condition("KubernetesAPIApprovalPolicyConformant", state, message, now)
    return (condition if state == "ApprovedAnnotation" else {**condition, "status": "False"},)


def is_established(definition: Document) -> bool:
    """Return whether the resources of a definition are served: all its names were accepted once."""
    return has_condition(definition, "Established", "True")


_SINGLE_NAMES = (("plural", "Plural"), ("singular", "Singular"), ("kind", "Kind"), ("listKind", "ListKind"))


def _accepted_names(definition: Document, names: AcceptedNames) -> tuple[Document, tuple[str, str] | None]:
    """Return the accepted names, and the reason and message of the last conflict, or None if there is none."""
    before, spec = part(definition, "status", "acceptedNames"), part(definition, "spec")
    in_use = partial(names.in_use, str(spec.get("group")))
    wanted = part(spec, "names")
    accepted, conflict = {**before}, None
    for name, shown in _SINGLE_NAMES:
        found = str(wanted.get(name) or "")
        indexed = resource_name(found) if name in ("plural", "singular") else kind_name(found)
        if found != (before.get(name) or "") and in_use(name=indexed):
            conflict = f"{shown}Conflict", f"{quote(found)} is already in use"
        elif found:
            accepted[name] = found
        if name == "singular":
            short, known = texts(wanted, "shortNames"), frozenset(texts(before, "shortNames"))
            taken = [each for each in short if each not in known and in_use(name=resource_name(each))]
            if taken:
                problems = [f"{quote(each)} is already in use" for each in taken]
                text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
                conflict = "ShortNamesConflict", text
            else:
                accepted = _with_texts(accepted, "shortNames", short)
    return _with_texts(accepted, "categories", texts(wanted, "categories")), conflict


def _with_texts(names: Document, name: str, found: list[str]) -> Document:
    without = {key: item for key, item in names.items() if key != name}
    return {**without, name: found} if found else without


def _is_same(before: Document, condition: Document) -> bool:
    return all(before.get(name) == condition[name] for name in ("status", "reason", "message"))


def terminating(definition: Document, now: str) -> Document:
    """Return a definition that is marked for deletion, as upstream's endpoint does before its objects are deleted."""
    metadata, status = part(definition, "metadata"), part(definition, "status")
    finalizers = [*(each for each in texts(metadata, "finalizers") if each != CLEANUP), CLEANUP]
    message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    return {
        **definition,
        "metadata": {**metadata, "deletionTimestamp": now, "finalizers": finalizers},
        "status": with_condition(status, _condition("Terminating", "InstanceDeletionPending", message, now)),
    }


def deleting_status(definition: Document, now: str, *, done: bool) -> Document:
    """Return the status of a definition while its objects are deleted, or after that (`done`)."""
    if done:
        condition = _condition("Terminating", "InstanceDeletionCompleted", "removed all instances", now)
        condition["status"] = "False"
    else:
        reason = "InstanceDeletionInProgress"
        condition = _condition("Terminating", reason, "CustomResource deletion is in progress", now)
    return with_condition(part(definition, "status"), condition)


def _condition(name: str, reason: str, message: str, now: str) -> Document:
    return {"type": name, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}
