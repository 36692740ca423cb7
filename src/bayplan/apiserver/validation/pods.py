"""Validation rules of Pods and PodTemplates, including which fields of a pod are mutable."""

from __future__ import annotations

from bayplan.apiserver.model.errors import forbidden_value, invalid_value, required
from bayplan.apiserver.model.object_meta import shown
from bayplan.apiserver.schema.emptied import Emptied
from bayplan.apiserver.validation.containers import image_padding
from bayplan.apiserver.validation.engine import Causes, copied, inside, kind
from bayplan.apiserver.validation.internal_json import difference, shown_as
from bayplan.apiserver.validation.pod_annotations import pod_annotation_changes, pod_annotations, profile_annotations
from bayplan.apiserver.validation.pod_specs import check_pod_spec, pod_template
from bayplan.apiserver.validation.pod_status import pod_status
from bayplan.apiserver.validation.tolerations import tolerations
from bayplan.base.plain_data import Document, part, parts

_INT32_MAX = 2**31 - 1
_CHANGED = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n"
)


def check_pod_metadata_and_spec(pod: Document, path: str, out: Causes) -> None:
    """Run the checks that creates, updates and resizes of a pod share."""
    metadata, spec = part(pod, "metadata"), part(pod, "spec")
    pod_annotations(part(metadata, "annotations"), spec, "metadata.annotations", out)
    check_pod_spec(spec, "spec", out, pod_name=str(metadata.get("name") or ""), is_pod=True)
    if not spec.get("serviceAccountName"):
        for index, volume in enumerate(parts(spec, "volumes")):
            for position, source in enumerate(parts(part(volume, "projected"), "sources")):
                if source.get("serviceAccountToken") is not None:
                    at = f"spec.volumes[{index}].projected.sources[{position}].serviceAccountToken"
                    out.append(forbidden_value(at, "must not be specified when serviceAccountName is not set"))
    for name in ("containers", "initContainers"):
        for index, container in enumerate(parts(spec, name)):
            image_padding(container, f"spec.{name}[{index}]", out)


def _create(pod: Document, path: str, out: Causes) -> None:
    check_pod_metadata_and_spec(pod, path, out)
    spec = part(pod, "spec")
    if spec.get("ephemeralContainers"):
        out.append(forbidden_value("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        detail = "cannot be set until all schedulingGates have been cleared"
        out.append(forbidden_value("spec.nodeName", detail))
    profile_annotations(part(pod, "metadata", "annotations"), spec, "spec", out)


# --- updates ----------------------------------------------------------------------------------------------------------


def _images(spec: Document, before: Document, name: str, out: Causes) -> bool:
    """Check the images of containers, and return whether the number of containers is unchanged."""
    new, old = parts(spec, name), parts(before, name)
    if len(new) != len(old):
        out.append(forbidden_value(f"spec.{name}", "pod updates may not add or remove containers"))
        return False
    for index, container in enumerate(new):
        here = f"spec.{name}[{index}]"
        if not container.get("image"):
            out.append(required(f"{here}.image"))
        image_padding(container, here, out)
    return True


def _deadline(spec: Document, before: Document, out: Causes) -> bool:
    """Check a change of the deadline, and return False if upstream skips the rules after it."""
    new, old, here = (
        spec.get("activeDeadlineSeconds"),
        before.get("activeDeadlineSeconds"),
        "spec.activeDeadlineSeconds",
    )
    if isinstance(new, int):
        if not 0 <= new <= _INT32_MAX:
            out.append(invalid_value(here, str(new), f"must be between 0 and {_INT32_MAX}, inclusive"))
            return False
        if isinstance(old, int) and old < new:
            out.append(invalid_value(here, str(new), "must be less than or equal to previous value"))
            return False
    elif old is not None:
        out.append(invalid_value(here, "null", "must not update from a positive integer to nil value"))
    return True


def _only_added_tolerations(spec: Document, before: Document, out: Causes) -> None:
    def bare(toleration: Document) -> Document:
        return {
            name: item for name, item in toleration.items() if name != "tolerationSeconds" and item not in ("", None)
        }

    found = [bare(each) for each in parts(spec, "tolerations")]
    if any(bare(each) not in found for each in parts(before, "tolerations")):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        out.append(forbidden_value("spec.tolerations", detail))
        return
    tolerations(spec, "spec", out)


def _only_deleted_gates(spec: Document, before: Document, out: Causes) -> None:
    known = [each.get("name") for each in parts(before, "schedulingGates")]
    for index, gate in enumerate(parts(spec, "schedulingGates")):
        if gate.get("name") not in known:
            detail = f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            out.append(forbidden_value(f"spec.schedulingGates[{index}].name", detail))


_TERMS = "requiredDuringSchedulingIgnoredDuringExecution"


def _only_additions(new: Document, old: Document) -> bool:
    for name in ("matchExpressions", "matchFields"):
        if parts(new, name)[: len(parts(old, name))] != parts(old, name):
            return False
    return not (
        not parts(old, "matchExpressions")
        and not parts(old, "matchFields")
        and (parts(new, "matchExpressions") or parts(new, "matchFields"))
    )


def _gated_changes(changed: Document, before: Document, out: Causes) -> None:
    """Check the fields that are mutable while a pod has scheduling gates, and restore them in `changed`."""
    selector, selector_before = part(changed, "nodeSelector"), part(before, "nodeSelector")
    if any(selector.get(key) != item for key, item in selector_before.items()):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        out.append(invalid_value("spec.nodeSelector", shown(selector) if selector else "null", detail))
    _restore(changed, before, "nodeSelector")
    affinity, affinity_before = part(changed, "affinity"), part(before, "affinity")
    old_terms = parts(part(affinity_before, "nodeAffinity", _TERMS), "nodeSelectorTerms")
    new_terms = parts(part(affinity, "nodeAffinity", _TERMS), "nodeSelectorTerms")
    here = f"spec.affinity.nodeAffinity.{_TERMS}.nodeSelectorTerms"
    if old_terms and len(old_terms) != len(new_terms):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        out.append(invalid_value(here, shown_as("[]core.NodeSelectorTerm")(new_terms or None), detail))
    else:
        for index, (new, old) in enumerate(zip(new_terms, old_terms, strict=False)):
            if not _only_additions(new, old):
                detail = "only additions are allowed (no mutations or deletions)"
                out.append(invalid_value(f"{here}[{index}]", shown_as("core.NodeSelectorTerm")(new), detail))
    _restore_node_affinity(changed, before)


def _restore_node_affinity(changed: Document, before: Document) -> None:
    node_affinity = part(before, "affinity").get("nodeAffinity")
    if part(changed, "affinity").get("nodeAffinity") == node_affinity:
        return
    others = {name: item for name, item in part(changed, "affinity").items() if name != "nodeAffinity"}
    if before.get("affinity") is None and not others:
        changed.pop("affinity", None)
    elif node_affinity is None:
        changed["affinity"] = others
    else:
        changed["affinity"] = others | {"nodeAffinity": node_affinity}


def _restore(changed: Document, before: Document, name: str) -> None:
    if name in before:
        changed[name] = before[name]
    else:
        changed.pop(name, None)


def _with_image(container: Document, image: object) -> Document:
    changed = copied(container)
    changed["image"] = image
    return changed


def _update(new: Document, old: Document, out: Causes) -> None:
    """Check an update: only some fields of a pod are mutable."""
    check_pod_metadata_and_spec(new, "", out)
    spec, before = part(new, "spec"), part(old, "spec")
    annotations, annotations_before = (part(each, "metadata", "annotations") for each in (new, old))
    pod_annotation_changes(annotations, annotations_before, "metadata.annotations", out)
    pod_annotations(annotations, spec, "metadata.annotations", out)
    if not _images(spec, before, "containers", out) or not _images(spec, before, "initContainers", out):
        return
    if not _deadline(spec, before, out):
        return
    _only_added_tolerations(spec, before, out)
    _only_deleted_gates(spec, before, out)
    if spec == before:
        return
    changed = copied(spec)
    for name in ("containers", "initContainers"):
        if parts(spec, name):
            changed[name] = [
                _with_image(each, was.get("image") or "")
                for each, was in zip(parts(spec, name), parts(before, name), strict=True)
            ]
    restored = ("activeDeadlineSeconds", "schedulingGates", "tolerations")
    for name in restored:
        _restore(changed, before, name)
    if isinstance(changed, Emptied):
        for name in (*restored, "initContainers"):
            changed.empties.pop(name, None)
    grace = before.get("terminationGracePeriodSeconds")
    if isinstance(grace, int) and grace < 0 and changed.get("terminationGracePeriodSeconds") == 1:
        changed["terminationGracePeriodSeconds"] = grace
    if before.get("schedulingGates"):
        _gated_changes(changed, before, out)
    if changed != before:
        out.append(forbidden_value("spec", _CHANGED + difference("core.PodSpec", before, changed)))


POD = kind(_create, update=[_update], status=[pod_status], metadata=("change", "object"))
POD_TEMPLATE = kind(inside("template", pod_template))
KINDS = {"pods": POD, "podtemplates": POD_TEMPLATE}
