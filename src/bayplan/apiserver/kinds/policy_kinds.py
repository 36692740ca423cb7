"""Strategies of disruption budgets, priority classes and storage classes."""

from __future__ import annotations

import re

from bayplan.apiserver.kinds.affinity_validation import check_label_selector
from bayplan.apiserver.kinds.strategy import Context, Strategy, part
from bayplan.apiserver.rest.errors import Cause, forbidden, forbidden_value, invalid_value, not_supported, required
from bayplan.apiserver.rest.object_meta import shown
from bayplan.base.go_arithmetic import whole_number
from bayplan.base.plain_data import Document
from bayplan.objects.selectors import quote

_HIGHEST_USER_PRIORITY = 1_000_000_000
_SYSTEM_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_PERCENT = re.compile(r"[0-9]+%")
_CLASSES = "scheduling.k8s.io/priorityclasses"


class BudgetStrategy(Strategy):
    """Pod disruption budgets."""

    counts_generations = True
    unconditional_update = False

    def validate(self, context: Context, document: Document) -> list[Cause]:
        """Check that one of the two limits is set, and is a number or a percentage."""
        spec = part(document, "spec")
        least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
        causes: list[Cause] = []
        if least is not None and most is not None:
            text = "minAvailable and maxUnavailable cannot be both set"
            causes.append(invalid_value("spec", _internal(spec), text))
        for name, value in (("minAvailable", least), ("maxUnavailable", most)):
            causes += _check_amount(value, f"spec.{name}")
        policy = spec.get("unhealthyPodEvictionPolicy")
        if policy not in (None, "IfHealthyBudget", "AlwaysAllow"):
            choices = ("AlwaysAllow", "IfHealthyBudget")
            causes.append(not_supported("spec.unhealthyPodEvictionPolicy", quote(str(policy)), choices))
        return causes + check_label_selector(part(spec, "selector"), "spec.selector")


def _internal(spec: Document) -> str:
    """Return a spec as Go prints its internal struct."""
    names = ("MinAvailable", "Selector", "MaxUnavailable", "UnhealthyPodEvictionPolicy")
    return shown({name: spec.get(name[0].lower() + name[1:]) for name in names})


def _check_amount(value: object, field: str) -> list[Cause]:
    if isinstance(value, int) and value < 0:
        return [invalid_value(field, str(value), "must be greater than or equal to 0")]
    if isinstance(value, str):
        if not _PERCENT.fullmatch(value):
            text = "a valid percent string must be a numeric string followed by an ending '%' "
            text += "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
            return [invalid_value(field, quote(value), text)]
        if whole_number(value[:-1]) > 100:
            return [invalid_value(field, quote(value), "must not be greater than 100%")]
    return []


class PriorityClassStrategy(Strategy):
    """Priority classes: one global default, values that stay."""

    counts_generations = True
    generation_fields = ("value", "globalDefault", "description", "preemptionPolicy")

    def admit(self, context: Context, document: Document) -> None:
        """Refuse a second global default.

        Raises:
            ApiError: there is one.
        """
        self._refuse_second_default(context, document)

    def _refuse_second_default(self, context: Context, document: Document) -> None:
        if not document.get("globalDefault"):
            return
        name = part(document, "metadata").get("name")
        for each in context.cluster.all(_CLASSES):
            other = part(each, "metadata").get("name")
            if each.get("globalDefault") and other != name:
                why = f"PriorityClass {other} is already marked as default. Only one default can exist"
                raise forbidden("priorityclasses", "scheduling.k8s.io", str(name), why)

    def validate(self, context: Context, document: Document) -> list[Cause]:
        """Check value, name and policy."""
        name, value = str(part(document, "metadata").get("name") or ""), document.get("value", 0)
        causes: list[Cause] = []
        if name.startswith("system-"):
            if name not in _SYSTEM_CLASSES:
                text = "priority class names with 'system-' prefix are reserved for system use only. error: "
                causes.append(forbidden_value("metadata.name", f"{text}{name} is not a known system priority class"))
        elif isinstance(value, int) and value > _HIGHEST_USER_PRIORITY:
            text = f"maximum allowed value of a user defined priority is {_HIGHEST_USER_PRIORITY}"
            causes.append(forbidden_value("value", text))
        policy = document.get("preemptionPolicy")
        if policy not in (None, "Never", "PreemptLowerPriority"):
            choices = ("Never", "PreemptLowerPriority")
            causes.append(not_supported("preemptionPolicy", quote(str(policy)), choices))
        return causes

    def validate_update(self, context: Context, new: Document, old: Document) -> list[Cause]:
        """Check that value and policy stay."""
        self._refuse_second_default(context, new)
        causes: list[Cause] = []
        if new.get("value", 0) != old.get("value", 0):
            causes.append(forbidden_value("value", "may not be changed in an update."))
        if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
            policy = quote(str(new.get("preemptionPolicy") or ""))
            causes.append(invalid_value("preemptionPolicy", policy, "field is immutable"))
        return causes


class StorageClassStrategy(Strategy):
    """Storage classes: all but labels and expansion stays."""

    returns_deleted = True

    def validate(self, context: Context, document: Document) -> list[Cause]:
        """Check provisioner and modes."""
        causes: list[Cause] = []
        if not document.get("provisioner"):
            causes.append(required("provisioner"))
        policy = str(document.get("reclaimPolicy") or "")
        if policy not in ("Delete", "Retain"):
            causes.append(not_supported("reclaimPolicy", quote(policy), ("Delete", "Retain")))
        mode, modes = str(document.get("volumeBindingMode") or ""), ("Immediate", "WaitForFirstConsumer")
        if mode not in modes:
            causes.append(not_supported("volumeBindingMode", quote(mode), modes))
        return causes

    def validate_update(self, context: Context, new: Document, old: Document) -> list[Cause]:
        """Check what stays."""
        causes = self.validate(context, new)
        if new.get("parameters") != old.get("parameters"):
            causes.append(forbidden_value("parameters", "updates to parameters are forbidden."))
        for name in ("provisioner", "reclaimPolicy", "volumeBindingMode"):
            if new.get(name) != old.get(name):
                causes.append(invalid_value(name, shown(new.get(name)), "field is immutable"))
        return causes
