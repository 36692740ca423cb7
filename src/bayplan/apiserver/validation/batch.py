"""Validation rules of Jobs and CronJobs."""

from __future__ import annotations

import re

from bayplan.apiserver.model.errors import Cause, duplicate, invalid_value, not_supported, required
from bayplan.apiserver.model.object_meta import shown
from bayplan.apiserver.validation.apps import template_labels
from bayplan.apiserver.validation.cron import schedule_problem
from bayplan.apiserver.validation.engine import (
    Causes,
    changed_metadata,
    choice,
    field,
    go_value,
    immutable,
    inside,
    kind,
    max_bytes,
    one_of,
    required_if,
    table,
    too_many,
    value,
)
from bayplan.apiserver.validation.formats import domain_prefixed_path, nonnegative, nonnegatives, qualified_name
from bayplan.apiserver.validation.internal_json import internal, shown_as
from bayplan.apiserver.validation.job_status import job_status
from bayplan.apiserver.validation.pod_specs import pod_template
from bayplan.apiserver.validation.selectors import LABEL_SELECTOR, selector_is_valid, selects, shown_selector
from bayplan.base.errors import InputError
from bayplan.base.go_text.json import json_text
from bayplan.base.plain_data import Document, part, parts
from bayplan.controllers.cron_schedule import load_time_zone
from bayplan.objects.names import check_dns1123_label
from bayplan.objects.selectors import quote

_MAX_INDEXED, _MAX_COMPLETIONS, _MAX_HIGH = 100_000, 100_000, 10_000
_MAX_RULES, _MAX_EXIT_CODES, _MAX_INDEXES_BYTES = 20, 255, 64 * 1024
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_ZONE_PART = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")


def _number(document: Document, name: str) -> int | None:
    found = document.get(name)
    return found if isinstance(found, int) else None


# --- policies ---------------------------------------------------------------------------------------------------------


def _listed(names: tuple[str, ...]) -> str:
    return "valid values: [" + " ".join(quote(name) for name in names) + "]"


def _listed_choice(found: str, path: str, names: tuple[str, ...], out: Causes) -> None:
    if not found:
        out.append(required(path, _listed(names)))
    elif found not in names:
        out.append(not_supported(path, quote(found), names))


def _exit_codes(document: Document, path: str, names: set[str], out: Causes) -> None:
    operator = str(document.get("operator") or "")
    _listed_choice(operator, f"{path}.operator", ("In", "NotIn"), out)
    name = document.get("containerName")
    if name is not None and name not in names:
        detail = "must be one of the container or initContainer names in the pod template"
        out.append(invalid_value(f"{path}.containerName", go_value(name), detail))
    found = document.get("values")
    codes = [int(str(code)) for code in found] if isinstance(found, list) else []
    here = f"{path}.values"
    if not codes:
        out.append(invalid_value(here, go_value(found), "at least one value is required"))
    elif len(codes) > _MAX_EXIT_CODES:
        out.append(too_many(here, len(codes), _MAX_EXIT_CODES))
    for index, code in enumerate(codes):
        if operator == "In" and code == 0:
            out.append(invalid_value(f"{here}[{index}]", "0", "must not be 0 for the In operator"))
        if code in codes[:index]:
            out.append(duplicate(f"{here}[{index}]", str(code)))
    if codes != sorted(codes):
        out.append(invalid_value(here, go_value(codes), "must be ordered"))


def _pod_conditions(rule: Document, path: str, out: Causes) -> None:
    found = parts(rule, "onPodConditions")
    if len(found) > _MAX_RULES:
        out.append(too_many(f"{path}.onPodConditions", len(found), _MAX_RULES))
    for index, pattern in enumerate(found):
        here = f"{path}.onPodConditions[{index}]"
        qualified_name(pattern.get("type") or "", f"{here}.type", out)
        _listed_choice(str(pattern.get("status") or ""), f"{here}.status", ("False", "True", "Unknown"), out)


def _omitted(path: str, detail: str) -> Cause:
    return Cause("FieldValueInvalid", f"Invalid value: {detail}", path)


def _failure_policy(spec: Document, path: str, out: Causes) -> None:
    policy = spec.get("podFailurePolicy")
    if not isinstance(policy, dict):
        return
    rules, here = parts(policy, "rules"), f"{path}.podFailurePolicy.rules"
    if len(rules) > _MAX_RULES:
        out.append(too_many(here, len(rules), _MAX_RULES))
    template = part(spec, "template", "spec")
    names = {
        str(container.get("name") or "")
        for name in ("containers", "initContainers")
        for container in parts(template, name)
    }
    for index, rule in enumerate(rules):
        inner, action = f"{here}[{index}]", str(rule.get("action") or "")
        if action == "FailIndex":
            if spec.get("backoffLimitPerIndex") is None:
                detail = "requires the backoffLimitPerIndex to be set"
                out.append(invalid_value(f"{inner}.action", quote(action), detail))
        else:
            _listed_choice(action, f"{inner}.action", _ACTIONS, out)
        codes = rule.get("onExitCodes")
        if isinstance(codes, dict):
            _exit_codes(codes, f"{inner}.onExitCodes", names, out)
        _pod_conditions(rule, inner, out)
        count = isinstance(codes, dict) + bool(parts(rule, "onPodConditions"))
        if count == 2:
            out.append(_omitted(inner, "specifying both OnExitCodes and OnPodConditions is not supported"))
        elif not count:
            out.append(_omitted(inner, "specifying one of OnExitCodes and OnPodConditions is required"))


def _index_interval(text: str, completions: int) -> tuple[int, int] | str:
    """Return the first and last index of an interval like ``3-5`` or ``1``, or the error as a string."""
    limits = text.split("-")
    if len(limits) > 2:
        why = "violates the requirement that an index interval can have at most two parts separated by '-'"
        return f"the fragment {quote(text)} {why}"
    found: list[int] = []
    for limit in limits:
        if not re.fullmatch(r"[+-]?[0-9]+", limit):
            return f"cannot convert string to integer for index: {quote(limit)}"
        found.append(int(limit))
        if found[-1] >= completions:
            return f"too large index: {quote(limit)}"
    if len(found) > 1 and found[0] >= found[1]:
        return f"non-increasing order, previous: {found[0]}, current: {found[1]}"
    return found[0], found[-1]


def count_indexes(text: str, completions: int) -> int | str:
    """Return the number of indexes in a list like ``1,3-5``, or the error as a string."""
    total, last = 0, None
    for interval in text.split(",") if text else ():
        found = _index_interval(interval, completions)
        if isinstance(found, str):
            return found
        first, end = found
        if last is not None and last >= first:
            return f"non-increasing order, previous: {last}, current: {first}"
        total += end - first + 1
        last = end
    return total


def _success_rule(rule: Document, completions: int, path: str, out: Causes) -> None:
    count, indexes = _number(rule, "succeededCount"), rule.get("succeededIndexes")
    total = 0
    if count is None and indexes is None:
        out.append(required(path, "at least one of succeededCount or succeededIndexes must be specified"))
    if indexes is not None:
        here = f"{path}.succeededIndexes"
        max_bytes(_MAX_INDEXES_BYTES)(indexes, here, out)
        found = count_indexes(str(indexes), completions)
        if isinstance(found, str):
            out.append(invalid_value(here, quote(str(indexes)), f"error parsing succeededIndexes: {found}"))
        else:
            total = found
    if count is None:
        return
    here = f"{path}.succeededCount"
    nonnegative(count, here, out)
    if count > completions:
        detail = f"must be less than or equal to {completions} (the number of specified completions)"
        out.append(invalid_value(here, str(count), detail))
    if indexes is not None and count > total:
        detail = (
            f"must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
        )
        out.append(invalid_value(here, str(count), detail))


def _success_policy(spec: Document, path: str, out: Causes) -> None:
    policy, here = spec.get("successPolicy"), f"{path}.successPolicy"
    if not isinstance(policy, dict):
        return
    if spec.get("completionMode") != "Indexed":
        found = shown_as("batch.SuccessPolicy")(policy)
        out.append(invalid_value(here, found, "requires indexed completion mode"))
        return
    rules = parts(policy, "rules")
    if not rules:
        out.append(
            required(f"{here}.rules", "at least one rules must be specified when the successPolicy is specified")
        )
    if len(rules) > _MAX_RULES:
        out.append(too_many(f"{here}.rules", len(rules), _MAX_RULES))
    for index, rule in enumerate(rules):
        _success_rule(rule, _number(spec, "completions") or 0, f"{here}.rules[{index}]", out)


def _replacement_policy(spec: Document, path: str, out: Causes) -> None:
    policy, here = spec.get("podReplacementPolicy"), f"{path}.podReplacementPolicy"
    if policy is None:
        return
    choices = ("Failed",) if spec.get("podFailurePolicy") is not None else ("Failed", "TerminatingOrFailed")
    one_of(*choices)(policy, here, out)


# --- Job --------------------------------------------------------------------------------------------------------------


def _indexed(spec: Document, path: str, out: Causes) -> None:
    """Check the fields that depend on the completion mode."""
    mode = spec.get("completionMode")
    completions, parallelism, failed = (
        _number(spec, name) for name in ("completions", "parallelism", "maxFailedIndexes")
    )

    def above(name: str, found: int | None, limit: int, detail: str) -> None:
        if found is not None and found > limit:
            out.append(invalid_value(f"{path}.{name}", str(found), detail))

    if mode is not None:
        one_of("NonIndexed", "Indexed")(mode, f"{path}.completionMode", out)
    if mode == "Indexed":
        if completions is None:
            out.append(required(f"{path}.completions", "when completion mode is Indexed"))
        limit = f"must be less than or equal to {_MAX_INDEXED}"
        above("parallelism", parallelism, _MAX_INDEXED, f"{limit} when completion mode is Indexed")
        if completions is not None:
            above("maxFailedIndexes", failed, completions, "must be less than or equal to completions")
        above("maxFailedIndexes", failed, _MAX_INDEXED, limit)
        if (completions or 0) > _MAX_COMPLETIONS and spec.get("backoffLimitPerIndex") is not None:
            if failed is None:
                detail = f"must be specified when completions is above {_MAX_COMPLETIONS}"
                out.append(required(f"{path}.maxFailedIndexes", detail))
            detail = f"must be less than or equal to {_MAX_HIGH} when completions are above {_MAX_COMPLETIONS} "
            detail += "and used with backoff limit per index"
            above("parallelism", parallelism, _MAX_HIGH, detail)
            above("maxFailedIndexes", failed, _MAX_HIGH, detail)
    if mode in (None, "NonIndexed"):
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(name) is not None:
                detail = "requires indexed completion mode"
                out.append(invalid_value(f"{path}.{name}", go_value(spec[name]), detail))


def _restart_policy(spec: Document, path: str, out: Causes) -> None:
    policy, here = str(part(spec, "template", "spec").get("restartPolicy") or ""), f"{path}.template.spec.restartPolicy"
    if policy in ("Always", ""):
        out.append(required(here, 'valid values: "OnFailure", "Never"'))
    elif policy not in ("OnFailure", "Never"):
        out.append(not_supported(here, quote(policy), ("OnFailure", "Never")))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        detail = 'only "Never" is supported when podFailurePolicy is specified'
        out.append(invalid_value(here, quote(policy), detail))


_JOB_SPEC = table(
    *nonnegatives(
        "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
        "backoffLimitPerIndex", "maxFailedIndexes",
    ),
    required_if(
        lambda spec: spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None,
        "backoffLimitPerIndex",
        "when maxFailedIndexes is specified",
    ),
    field("managedBy", domain_prefixed_path, max_bytes(63)),
    _indexed,
    _failure_policy,
    _success_policy,
    _replacement_policy,
    inside("template", pod_template),
    _restart_policy,
)  # fmt: skip


def _generated_selector(job: Document, path: str, out: Causes) -> None:
    """Check that the selector and the template's labels have the values generated from the uid, unless the selector is manual."""
    spec, metadata = part(job, "spec"), part(job, "metadata")
    if spec.get("manualSelector") or not isinstance(spec.get("selector"), dict):
        return
    uid, name = str(metadata.get("uid") or ""), str(metadata.get("name") or "")
    labels = part(spec, "template", "metadata", "labels")
    prefix = "batch.kubernetes.io/"
    wanted = {"controller-uid": uid, "job-name": name}
    wanted |= {f"{prefix}controller-uid": uid, f"{prefix}job-name": name}
    for key, text in wanted.items():
        here = f"spec.template.metadata.labels[{key}]"
        if key not in labels:
            out.append(required(here, f"must be '{text}'"))
        elif labels[key] != text:
            out.append(invalid_value(here, shown(dict(sorted(labels.items()))), f"must be '{text}'"))
    selector = part(spec, "selector")
    if selector_is_valid(selector) and not selects(selector, wanted):
        out.append(invalid_value("spec.selector", shown_selector(selector), "`selector` not auto-generated"))


def _selector(spec: Document, path: str, out: Causes) -> None:
    selector, template = spec.get("selector"), part(spec, "template")
    if not isinstance(selector, dict):
        out.append(required(f"{path}.selector"))
    else:
        LABEL_SELECTOR(selector, f"{path}.selector", out)
    taken = selects(selector, part(template, "metadata").get("labels"))
    if (not isinstance(selector, dict) or selector_is_valid(selector)) and not taken:
        template_labels(template, f"{path}.template", out)


def _highest_pod_name(job: Document, path: str, out: Causes) -> None:
    spec, name = part(job, "spec"), str(part(job, "metadata").get("name") or "")
    completions = _number(spec, "completions") or 0
    highest = f"{name}-{completions - 1}"
    if spec.get("completionMode") == "Indexed" and completions > 0 and check_dns1123_label(highest):
        detail = f"will not able to create pod with invalid DNS label: {highest}"
        out.append(invalid_value("metadata.name", quote(name), detail))


def _completions_stay(new: Document, old: Document, out: Causes) -> None:
    spec, before = part(new, "spec"), part(old, "spec")
    found = spec.get("completions")
    if found == before.get("completions"):
        return
    if spec.get("completionMode") != "Indexed":
        out.append(invalid_value("spec.completions", go_value(found), "field is immutable"))
    elif found is not None and found != spec.get("parallelism"):
        detail = "can only be modified in tandem with spec.parallelism"
        out.append(invalid_value("spec.completions", go_value(found), detail))


def _template_may_change(job: Document) -> bool:
    """Return whether the scheduling fields of a Job's template are mutable: it is suspended and has no active pods."""
    status = part(job, "status")
    is_held = any(
        each.get("type") == "Suspended" and each.get("status") == "True" for each in parts(status, "conditions")
    )
    suspended = bool(part(job, "spec").get("suspend"))
    return suspended and (status.get("startTime") is None or is_held) and not status.get("active")


def _with_new_directives(before: Document, template: Document) -> Document:
    """Return the old template with the mutable scheduling fields of the new template."""
    inner, inner_before = part(template, "spec"), dict(part(before, "spec"))
    affinity = {key: item for key, item in part(inner_before, "affinity").items() if key != "nodeAffinity"}
    if "nodeAffinity" in part(inner, "affinity"):
        affinity["nodeAffinity"] = part(inner, "affinity")["nodeAffinity"]
    inner_before["affinity"] = affinity or (None if inner.get("affinity") is None else {})
    for name in ("nodeSelector", "tolerations", "schedulingGates"):
        inner_before[name] = inner.get(name)
    metadata = dict(part(before, "metadata"))
    for name in ("labels", "annotations"):
        metadata[name] = part(template, "metadata").get(name)
    found: Document = {key: item for key, item in inner_before.items() if item is not None}
    return {**before, "metadata": {key: item for key, item in metadata.items() if item is not None}, "spec": found}


def _template_stays(new: Document, old: Document, out: Causes) -> None:
    template, before = part(new, "spec", "template"), part(old, "spec", "template")
    may_change = _template_may_change(old)
    if may_change:
        before = _with_new_directives(before, template)
        inner, inner_before = part(template, "spec"), dict(part(before, "spec"))
        for name in ("containers", "initContainers"):
            after, was = parts(inner, name), parts(inner_before, name)
            if len(after) == len(was) and was:
                inner_before[name] = [
                    {**one, "resources": other.get("resources")} if one.get("name") == other.get("name") else one
                    for one, other in zip(was, after, strict=True)
                ]
        if inner != inner_before:
            found = json_text(internal("core.PodSpec", inner))
            out.append(invalid_value("spec.template.spec", found, "field is immutable"))
    elif _nothing_empty(template) != _nothing_empty(before):
        found = json_text(internal("core.PodTemplateSpec", template))
        out.append(invalid_value("spec.template", found, "field is immutable"))


def _nothing_empty(template: Document) -> Document:
    return {name: item for name, item in template.items() if item not in (None, {})}


_SELECTED_JOB = inside("spec", _JOB_SPEC, _selector)
JOB = kind(
    _generated_selector,
    _SELECTED_JOB,
    _highest_pod_name,
    after=[
        changed_metadata(),
        lambda new, _old, out: _SELECTED_JOB(new, "", out),
        _completions_stay,
        immutable("spec.selector", show=shown_as("*metav1.LabelSelector")),
        _template_stays,
        immutable("spec.completionMode"),
        immutable("spec.podFailurePolicy", show=shown_as("*batch.PodFailurePolicy")),
        immutable("spec.backoffLimitPerIndex"),
        immutable("spec.managedBy"),
        immutable("spec.successPolicy", show=shown_as("*batch.SuccessPolicy")),
    ],
    status=[job_status],
    metadata=("object",),
)

# --- CronJob ----------------------------------------------------------------------------------------------------------


def _time_zone(found: object, path: str, out: Causes) -> None:
    name = str(found)
    if not name:
        out.append(invalid_value(path, '""', "timeZone must be nil or non-empty string"))
        return
    for piece in name.split("/"):
        if piece in (".", "..") or piece.startswith("-") or not _ZONE_PART.fullmatch(piece):
            out.append(invalid_value(path, quote(name), f"unknown time zone {name}"))
            return
    if name.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        out.append(invalid_value(path, quote(name), detail))
        if name == "Local":
            return
    try:
        load_time_zone(name)
    except InputError:
        out.append(invalid_value(path, quote(name), f"unknown time zone {name}"))


def _schedule(spec: Document, before: Document | None, out: Causes) -> None:
    text, here = str(spec.get("schedule") or ""), "spec.schedule"
    if not text:
        out.append(required(here))
        return
    problem = schedule_problem(text)
    if problem:
        out.append(invalid_value(here, quote(text), problem))
    if "TZ" not in text:
        return
    if "TZ" not in str((before or {}).get("schedule") or ""):
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        out.append(invalid_value(here, quote(text), detail))
    elif spec.get("timeZone") is not None:
        detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        out.append(invalid_value(here, quote(text), detail))


def _job_selector(spec: Document, path: str, out: Causes) -> None:
    if spec.get("selector") is not None:
        found = shown_selector(spec["selector"])
        out.append(invalid_value(f"{path}.selector", found, "`selector` will be auto-generated"))
    if spec.get("manualSelector"):
        out.append(not_supported(f"{path}.manualSelector", "true", ("nil", "false")))


_DEADLINE = inside("spec", *nonnegatives("startingDeadlineSeconds"))
_ZONE = inside("spec", field("timeZone", _time_zone))
_REST = inside(
    "spec",
    value("concurrencyPolicy", choice("Allow", "Forbid", "Replace")),
    inside("jobTemplate", inside("spec", _JOB_SPEC, _job_selector)),
    *nonnegatives("successfulJobsHistoryLimit", "failedJobsHistoryLimit"),
)


def _cron_job(new: Document, old: Document | None, out: Causes) -> None:
    before = None if old is None else part(old, "spec")
    _schedule(part(new, "spec"), before, out)
    _DEADLINE(new, "", out)
    if before is None or before.get("timeZone") != part(new, "spec").get("timeZone"):
        _ZONE(new, "", out)
    _REST(new, "", out)


def _name_length(job: Document, path: str, out: Causes) -> None:
    name = str(part(job, "metadata").get("name") or "")
    if len(name) > 52:
        out.append(invalid_value("metadata.name", quote(name), "must be no more than 52 characters"))


CRON_JOB = kind(lambda job, _path, out: _cron_job(job, None, out), _name_length, update=[_cron_job], status_metadata=())
KINDS = {"batch/jobs": JOB, "batch/cronjobs": CRON_JOB}
