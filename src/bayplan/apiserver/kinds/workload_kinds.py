"""Strategies of workloads: generations, and the fields of Jobs that the server generates."""

from __future__ import annotations

from typing import ClassVar

from bayplan.apiserver.fields.field_set import Node
from bayplan.apiserver.kinds.default_functions import TEMPLATE_GENERATION
from bayplan.apiserver.kinds.strategy import Context, Strategy
from bayplan.base.plain_data import Document, part
from bayplan.objects.names import check_label_value


class WorkloadStrategy(Strategy):
    """Workloads whose generation counts changes of the spec."""

    counts_generations = True

    def __init__(self, name_check: str = "subdomain") -> None:
        self.name_check = name_check


class DeploymentStrategy(WorkloadStrategy):
    """Deployments: changes of annotations also increment the generation; the status endpoint ignores labels."""

    status_reset: ClassVar[Node] = {"f:metadata": {"f:labels": {}}}

    def prepare_update(self, context: Context, new: Document, old: Document) -> None:
        """Restore the status, and increment the generation if spec or annotations changed."""
        super().prepare_update(context, new, old)
        metadata, before = part(new, "metadata"), part(old, "metadata")
        if metadata.get("annotations") != before.get("annotations"):
            generation = before.get("generation")
            metadata["generation"] = (generation if isinstance(generation, int) else 0) + 1


class DaemonSetStrategy(WorkloadStrategy):
    """DaemonSets: maintains the template generation."""

    def prepare_create(self, context: Context, document: Document) -> None:
        """Set the template generation to the client's value, or 1 if that is lower."""
        super().prepare_create(context, document)
        _set_template_generation(document, max(_template_generation(document), 1))

    def prepare_update(self, context: Context, new: Document, old: Document) -> None:
        """Restore the status, and increment the template generation if the template changed."""
        super().prepare_update(context, new, old)
        changed = part(new, "spec").get("template") != part(old, "spec").get("template")
        _set_template_generation(new, _template_generation(old) + changed)

    def prepare_status(self, context: Context, new: Document, old: Document) -> None:
        """Restore everything except the status, including the template generation."""
        super().prepare_status(context, new, old)
        _set_template_generation(new, _template_generation(old))


def _template_generation(daemon_set: Document) -> int:
    text = str(part(daemon_set, "metadata", "annotations").get(TEMPLATE_GENERATION) or "")
    return int(text) if text.isdecimal() else 0


def _set_template_generation(daemon_set: Document, generation: int) -> None:
    metadata = part(daemon_set, "metadata")
    metadata["annotations"] = {**part(metadata, "annotations"), TEMPLATE_GENERATION: str(generation)}


class ControllerStrategy(WorkloadStrategy):
    """ReplicationControllers: deletions orphan the pods by default."""

    orphans_by_default = True

    def __init__(self) -> None:
        super().__init__("class")


class JobStrategy(WorkloadStrategy):
    """Jobs: the selector and the pods' labels are generated from the uid, unless the job has a manual selector."""

    orphans_by_default = True
    delete_warning = (
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
        "propagationPolicy=Orphan to suppress this warning"
    )

    def prepare_create(self, context: Context, document: Document) -> None:
        """Reset the status, and generate the selector and the labels of the pods."""
        super().prepare_create(context, document)
        spec, metadata = part(document, "spec"), part(document, "metadata")
        if spec.get("manualSelector"):
            return
        uid, name = metadata.get("uid"), metadata.get("name") or ""
        template = part(spec, "template")
        inner = template["metadata"] = dict(part(template, "metadata"))
        generated: Document = {"controller-uid": uid, "job-name": name}
        generated |= {"batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name}
        labels = part(inner, "labels")
        own = metadata.get("labels")
        # A Job without labels gets the labels of its pods, including the generated labels.
        shared = not own or own is labels
        inner["labels"] = {**generated, **labels}
        # If the template has no labels of its own, upstream copies them after the validation, which refuses invalid values.
        if shared and (labels or not check_label_value(str(name))):
            metadata["labels"] = dict(part(inner, "labels"))
        selector = spec["selector"] = dict(part(spec, "selector"))
        name_of_uid = "batch.kubernetes.io/controller-uid"
        selector["matchLabels"] = {name_of_uid: uid, **part(selector, "matchLabels")}

    def prepare_update(self, context: Context, new: Document, old: Document) -> None:
        """Restore the status, and copy the pods' labels to a Job that has none."""
        super().prepare_update(context, new, old)
        _show_labels(new)

    def prepare_status(self, context: Context, new: Document, old: Document) -> None:
        """Restore everything except the status, and copy the pods' labels to a Job that has none."""
        super().prepare_status(context, new, old)
        _show_labels(new)


def _show_labels(job: Document) -> None:
    labels = part(job, "spec", "template", "metadata", "labels")
    metadata = part(job, "metadata")
    if labels and not metadata.get("labels"):
        metadata["labels"] = dict(labels)
