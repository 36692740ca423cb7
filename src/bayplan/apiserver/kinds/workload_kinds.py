"""Strategies of workloads: templates that their selectors match, selectors that stay, replicas that are not negative."""

from __future__ import annotations

from typing import ClassVar

from bayplan.apiserver.fields.field_set import Node
from bayplan.apiserver.kinds.affinity_validation import check_label_selector
from bayplan.apiserver.kinds.pod_spec_validation import check_pod_spec
from bayplan.apiserver.kinds.strategy import Context, Strategy, copy_part, part
from bayplan.apiserver.rest.errors import Cause, invalid_value, not_supported, required
from bayplan.apiserver.rest.label_match import matches_selector
from bayplan.apiserver.rest.object_meta import check_annotations, check_labels, shown
from bayplan.base.plain_data import Document
from bayplan.objects.selectors import quote

_NOT_NEGATIVE = "must be greater than or equal to 0"
_IMMUTABLE = "field is immutable"


class WorkloadStrategy(Strategy):
    """Deployments, ReplicaSets, StatefulSets, DaemonSets.

    Attributes:
        numbers: fields of the spec that are not negative.
    """

    counts_generations = True
    numbers: tuple[str, ...] = ("replicas",)
    restart_policies: tuple[str, ...] = ("Always",)

    def validate(self, context: Context, document: Document) -> list[Cause]:
        """Check numbers, selector and template."""
        spec = part(document, "spec")
        causes: list[Cause] = []
        for name in self.numbers:
            number = spec.get(name)
            if isinstance(number, int) and number < 0:
                causes.append(invalid_value(f"spec.{name}", str(number), _NOT_NEGATIVE))
        causes += self._check_selector(spec)
        return causes + self._check_template(spec)

    def _check_selector(self, spec: Document) -> list[Cause]:
        selector = spec.get("selector")
        if not isinstance(selector, dict):
            return [required("spec.selector")]
        if not selector:
            return [invalid_value("spec.selector", "{}", "empty selector is invalid for deployment")]
        return check_label_selector(selector, "spec.selector")

    def _check_template(self, spec: Document) -> list[Cause]:
        template = part(spec, "template")
        labels = part(template, "metadata", "labels")
        selector = part(spec, "selector")
        causes: list[Cause] = []
        if not selector or not matches_selector(selector, {key: str(value) for key, value in labels.items()}):
            text = "`selector` does not match template `labels`"
            causes.append(invalid_value("spec.template.metadata.labels", shown(labels) if labels else "null", text))
        causes += check_labels(labels, "spec.template.metadata.labels")
        causes += check_annotations(part(template, "metadata", "annotations"), "spec.template.metadata.annotations")
        inner = part(template, "spec")
        causes += check_pod_spec(inner, "spec.template.spec")
        policy = inner.get("restartPolicy")
        if policy in ("Always", "OnFailure", "Never") and policy not in self.restart_policies:
            field = "spec.template.spec.restartPolicy"
            causes.append(not_supported(field, quote(str(policy)), self.restart_policies))
        return causes

    def validate_update(self, context: Context, new: Document, old: Document) -> list[Cause]:
        """Check the whole again, and that the selector stays."""
        causes = self.validate(context, new)
        selector = part(new, "spec").get("selector")
        if selector != part(old, "spec").get("selector"):
            causes.append(invalid_value("spec.selector", shown(selector), _IMMUTABLE))
        return causes


class DeploymentStrategy(WorkloadStrategy):
    """Deployments; their status endpoint keeps labels, and changes of annotations count as a new generation."""

    numbers = ("replicas", "minReadySeconds", "revisionHistoryLimit")
    status_reset: ClassVar[Node] = {"f:metadata": {"f:labels": {}}}

    def prepare_update(self, context: Context, new: Document, old: Document) -> None:
        """Count changes of spec and annotations."""
        super().prepare_update(context, new, old)
        metadata, before = part(new, "metadata"), part(old, "metadata")
        if metadata.get("annotations") != before.get("annotations"):
            generation = before.get("generation")
            metadata["generation"] = (generation if isinstance(generation, int) else 0) + 1


class DaemonSetStrategy(WorkloadStrategy):
    """DaemonSets, which have no replicas."""

    numbers = ("minReadySeconds", "revisionHistoryLimit")


class ControllerStrategy(WorkloadStrategy):
    """ReplicationControllers, whose selector is a map of labels and may change."""

    def _check_selector(self, spec: Document) -> list[Cause]:
        return [] if part(spec, "selector") else [required("spec.selector")]

    def _check_template(self, spec: Document) -> list[Cause]:
        wrapped = {**spec, "selector": {"matchLabels": part(spec, "selector")}}
        return super()._check_template(wrapped)

    def validate_update(self, context: Context, new: Document, old: Document) -> list[Cause]:
        """Check the whole again."""
        return self.validate(context, new)


class JobStrategy(WorkloadStrategy):
    """Jobs: selector and labels of the pods are generated from the uid unless the job says that it has its own."""

    numbers = ("parallelism", "completions", "backoffLimit", "ttlSecondsAfterFinished")
    restart_policies = ("OnFailure", "Never")

    def prepare_create(self, context: Context, document: Document) -> None:
        """Generate selector and labels."""
        super().prepare_create(context, document)
        spec, metadata = part(document, "spec"), part(document, "metadata")
        if spec.get("manualSelector"):
            return
        uid, name = metadata.get("uid"), metadata.get("name")
        template = part(spec, "template")
        inner = template["metadata"] = dict(part(template, "metadata"))
        generated: Document = {"controller-uid": uid, "job-name": name}
        generated |= {"batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name}
        inner["labels"] = {**part(inner, "labels"), **generated}
        spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}

    def validate_update(self, context: Context, new: Document, old: Document) -> list[Cause]:
        """Check that selector, completions and (but for what scheduling may change) the template stay."""
        causes = self.validate(context, new)
        spec, before = dict(part(new, "spec")), part(old, "spec")
        if spec.get("suspend") or before.get("suspend"):
            copy_part(spec, before, "template")
        for name in ("selector", "template", "completionMode", "backoffLimitPerIndex", "podFailurePolicy"):
            if spec.get(name) != before.get(name):
                causes.append(invalid_value(f"spec.{name}", shown(spec.get(name)), _IMMUTABLE))
        if spec.get("completionMode") != "Indexed" and spec.get("completions") != before.get("completions"):
            causes.append(invalid_value("spec.completions", shown(spec.get("completions")), _IMMUTABLE))
        return causes


class CronJobStrategy(Strategy):
    """CronJobs: the template of their jobs."""

    counts_generations = True

    def validate(self, context: Context, document: Document) -> list[Cause]:
        """Check schedule and template."""
        spec = part(document, "spec")
        causes: list[Cause] = []
        if not spec.get("schedule"):
            causes.append(required("spec.schedule"))
        policies = ("Allow", "Forbid", "Replace")
        policy = str(spec.get("concurrencyPolicy") or "")
        if policy not in policies:
            causes.append(not_supported("spec.concurrencyPolicy", quote(policy), policies))
        field = "spec.jobTemplate.spec.template.spec"
        inner = part(spec, "jobTemplate", "spec", "template", "spec")
        causes += check_pod_spec(inner, field)
        if inner.get("restartPolicy") == "Always":
            causes.append(not_supported(f"{field}.restartPolicy", '"Always"', ("OnFailure", "Never")))
        return causes
