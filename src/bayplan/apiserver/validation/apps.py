"""Validation rules of the kinds of the group apps, and of ReplicationControllers."""

from __future__ import annotations

from bayplan.apiserver.codec import raw_values
from bayplan.apiserver.model.errors import forbidden_value, invalid_value, not_supported, required
from bayplan.apiserver.model.object_meta import check_annotations, check_labels, shown
from bayplan.apiserver.validation.claim_specs import CLAIM_SPEC
from bayplan.apiserver.validation.engine import (
    Causes,
    Change,
    Rule,
    each,
    field,
    go_value,
    if_filled,
    immutable,
    inside,
    invalid_if,
    kind,
    need,
    need_set,
    number,
    one_of,
    optional,
    sent,
    table,
    value,
    when,
)
from bayplan.apiserver.validation.formats import (
    amount_or_percent,
    dns_label,
    int_or_percent,
    nonnegative,
    nonnegatives,
    not_above_100_percent,
)
from bayplan.apiserver.validation.internal_json import internal
from bayplan.apiserver.validation.pod_annotations import pod_annotations
from bayplan.apiserver.validation.pod_specs import pod_template
from bayplan.apiserver.validation.selectors import LABEL_SELECTOR, is_empty, selector_is_valid, selects, shown_selector
from bayplan.base.go_text.json import json_text
from bayplan.base.plain_data import Document, part, parts

_NO_MATCH = "`selector` does not match template `labels`"

# --- templates --------------------------------------------------------------------------------------------------------


def template_labels(template: Document, path: str, out: Causes) -> None:
    """Append the error for a selector that does not match the labels of the pod template.

    The caller has compared them.
    """
    labels = sent(part(template, "metadata"), "labels")
    text = shown(dict(sorted(labels.items()))) if isinstance(labels, dict) else "null"
    out.append(invalid_value(f"{path}.metadata.labels", text, _NO_MATCH))


def _always_running(template: Document, path: str, owner: str, out: Causes) -> None:
    spec = part(template, "spec")
    if spec.get("restartPolicy") != "Always":
        found = go_value(spec.get("restartPolicy") or "")
        out.append(not_supported(f"{path}.spec.restartPolicy", found, ("Always",)))
    if spec.get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {owner} is not Supported"
        out.append(forbidden_value(f"{path}.spec.activeDeadlineSeconds", detail))


def _takes(selector: object, template: Document) -> bool:
    return selects(selector, part(template, "metadata").get("labels"))


def _selector(document: Document, path: str, out: Causes, *, owner: str) -> None:
    selector, here = document.get("selector"), f"{path}.selector"
    if not isinstance(selector, dict):
        out.append(required(here))
        return
    LABEL_SELECTOR(selector, here, out)
    if is_empty(selector):
        out.append(invalid_value(here, "{}", f"empty selector is invalid for {owner}"))


def _selected_template(document: Document, path: str, out: Causes) -> None:
    """Check the selector and template of a Deployment or ReplicaSet."""
    _selector(document, path, out, owner="deployment")
    selector, template = document.get("selector"), part(document, "template")
    here = f"{path}.template"
    if isinstance(selector, dict) and not selector_is_valid(selector):
        out.append(invalid_value(f"{path}.selector", shown_selector(selector), "invalid label selector"))
        return
    # A missing selector matches nothing, but an empty selector matches everything.
    if not (isinstance(selector, dict) and is_empty(selector)) and not _takes(selector, template):
        template_labels(template, here, out)
    pod_template(template, here, out)
    _always_running(template, here, "ReplicaSet", out)


# --- Deployment, ReplicaSet, ReplicationController --------------------------------------------------------------------


def _internal_struct(type_name: str) -> Rule:
    def run(document: Document, path: str, out: Causes) -> None:
        choices = ("Recreate", "RollingUpdate") if "Deployment" in type_name else ("RollingUpdate", "OnDelete")
        out.append(not_supported(path, json_text(internal(type_name, document)), choices))

    return run


def _no_movement(document: Document, path: str, out: Causes) -> None:
    surge, unavailable = document.get("maxSurge"), document.get("maxUnavailable")
    if not amount_or_percent(surge) and not amount_or_percent(unavailable):
        detail = "may not be 0 when `maxSurge` is 0"
        out.append(invalid_value(f"{path}.maxUnavailable", go_value(unavailable or 0), detail))


_ROLLING_DEPLOYMENT = table(
    value("maxUnavailable", int_or_percent, zero=0),
    value("maxSurge", int_or_percent, zero=0),
    _no_movement,
    value("maxUnavailable", not_above_100_percent, zero=0),
)


def _deployment_strategy(document: Document, path: str, out: Causes) -> None:
    kind_of_strategy, here = document.get("type"), f"{path}.rollingUpdate"
    rolling = document.get("rollingUpdate")
    if kind_of_strategy == "Recreate":
        if rolling is not None:
            out.append(forbidden_value(here, "may not be specified when strategy `type` is 'Recreate'"))
    elif kind_of_strategy == "RollingUpdate":
        if not isinstance(rolling, dict):
            out.append(required(here, "this should be defaulted and never be nil"))
        else:
            _ROLLING_DEPLOYMENT(rolling, here, out)
    else:
        _internal_struct("apps.DeploymentStrategy")(document, path, out)


def _deadline(document: Document, path: str, out: Causes) -> None:
    seconds, ready = document.get("progressDeadlineSeconds"), document.get("minReadySeconds") or 0
    if isinstance(seconds, int) and isinstance(ready, int) and seconds <= ready:
        detail = "must be greater than minReadySeconds"
        out.append(invalid_value(f"{path}.progressDeadlineSeconds", str(seconds), detail))


def _status(*names: str, total: tuple[str, ...], ready: str) -> Change:
    """Return the rule about the counters in a status: not negative, and not above the counter that they are part of."""

    def run(new: Document, _old: Document, out: Causes) -> None:
        status = part(new, "status")
        for name in names:
            number(name, nonnegative)(status, "status", out)
        of_all, of_ready = (int(str(status.get(name) or 0)) for name in ("replicas", "readyReplicas"))
        for name in total:
            found = int(str(status.get(name) or 0))
            if found > of_all:
                out.append(invalid_value(f"status.{name}", str(found), "cannot be greater than status.replicas"))
        available = int(str(status.get("availableReplicas") or 0))
        if available > of_ready:
            out.append(invalid_value("status.availableReplicas", str(available), f"cannot be greater than {ready}"))

    return run


def _collisions(new: Document, old: Document, out: Causes) -> None:
    after, before = (part(each_object, "status").get("collisionCount") for each_object in (new, old))
    if isinstance(before, int) and (not isinstance(after, int) or after < before):
        out.append(invalid_value("status.collisionCount", go_value(after or 0), "cannot be decremented"))


_SELECTOR_STAYS = immutable("spec.selector", show=shown_selector)
DEPLOYMENT = kind(
    inside(
        "spec",
        number("replicas", nonnegative),
        _selected_template,
        inside("strategy", _deployment_strategy),
        *nonnegatives("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"),
        _deadline,
    ),
    after=[_SELECTOR_STAYS],
    status=[
        _status(
            "observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
            "unavailableReplicas", "terminatingReplicas", "collisionCount",
            total=("updatedReplicas", "readyReplicas", "availableReplicas"), ready="readyReplicas",
        ),
        _collisions,
    ],
)  # fmt: skip
REPLICA_SET = kind(
    inside("spec", *nonnegatives("replicas", "minReadySeconds"), _selected_template),
    after=[_SELECTOR_STAYS],
    status=[
        _status(
            "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration",
            "terminatingReplicas",
            total=("fullyLabeledReplicas", "readyReplicas", "availableReplicas"), ready="readyReplicas",
        )
    ],
)  # fmt: skip


def _controlled_template(document: Document, path: str, out: Causes) -> None:
    template, here = document.get("template"), f"{path}.template"
    selector = part(document, "selector")
    if not isinstance(template, dict):
        out.append(required(here))
        return
    labels = part(template, "metadata", "labels")
    if any(labels.get(key) != item for key, item in selector.items()):
        template_labels(template, here, out)
    pod_template(template, here, out)
    _always_running(template, here, "ReplicationController", out)


CONTROLLER = kind(
    inside(
        "spec",
        *nonnegatives("minReadySeconds"),
        need("selector"),
        need_set("replicas"),
        field("replicas", nonnegative),
        _controlled_template,
    ),
    status=[
        _status(
            "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration",
            total=("fullyLabeledReplicas", "readyReplicas", "availableReplicas"), ready="readyReplicas",
        )
    ],
)  # fmt: skip

# --- DaemonSet --------------------------------------------------------------------------------------------------------


def _daemon_template(document: Document, path: str, out: Causes) -> None:
    selector, template = document.get("selector"), part(document, "template")
    here = f"{path}.template"
    optional("selector", LABEL_SELECTOR)(document, path, out)
    if (not isinstance(selector, dict) or selector_is_valid(selector)) and not _takes(selector, template):
        template_labels(template, here, out)
    if isinstance(selector, dict) and is_empty(selector):
        out.append(invalid_value(f"{path}.selector", "{}", "empty selector is invalid for daemonset"))
    pod_template(template, here, out)
    _always_running(template, here, "DaemonSet", out)


def _daemon_amounts(document: Document, path: str, out: Causes) -> None:
    surge, unavailable = (bool(amount_or_percent(document.get(name))) for name in ("maxSurge", "maxUnavailable"))
    if surge and unavailable:
        detail = "may not be set when maxUnavailable is non-zero"
        out.append(invalid_value(f"{path}.maxSurge", go_value(document.get("maxSurge")), detail))
    elif not surge and not unavailable:
        out.append(required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))


_ROLLING_DAEMON = table(
    value("maxUnavailable", int_or_percent, zero=0),
    value("maxSurge", int_or_percent, zero=0),
    value("maxUnavailable", not_above_100_percent, zero=0),
    value("maxSurge", not_above_100_percent, zero=0),
    _daemon_amounts,
)
_DAEMON_STRATEGY = when(
    lambda strategy: strategy.get("type") == "RollingUpdate",
    need_set("rollingUpdate"),
    optional("rollingUpdate", _ROLLING_DAEMON),
    otherwise=(
        when(lambda strategy: strategy.get("type") != "OnDelete", _internal_struct("apps.DaemonSetUpdateStrategy")),
    ),
)
DAEMON_SET = kind(
    inside(
        "spec",
        _daemon_template,
        *nonnegatives("minReadySeconds"),
        inside("updateStrategy", _DAEMON_STRATEGY),
        *nonnegatives("revisionHistoryLimit"),
    ),
    before=[_SELECTOR_STAYS],
    status=[
        lambda new, _old, out: inside(
            "status",
            *(
                number(name, nonnegative)
                for name in (
                    "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady",
                    "observedGeneration", "updatedNumberScheduled", "numberAvailable", "numberUnavailable",
                    "collisionCount",
                )
            ),
        )(new, "", out),
        _collisions,
    ],
)  # fmt: skip

# --- StatefulSet ------------------------------------------------------------------------------------------------------


def _stateful_strategy(document: Document, path: str, out: Causes) -> None:
    kind_of_strategy, rolling = document.get("type") or "", document.get("rollingUpdate")
    if not kind_of_strategy:
        out.append(required(path))
    elif kind_of_strategy == "OnDelete":
        if rolling is not None:
            found = json_text(internal("apps.RollingUpdateStatefulSetStrategy", rolling))
            detail = "only allowed for updateStrategy 'RollingUpdate'"
            out.append(invalid_value(f"{path}.rollingUpdate", found, detail))
    elif kind_of_strategy == "RollingUpdate":
        optional("rollingUpdate", _ROLLING_STATEFUL)(document, path, out)
    else:
        found = json_text(internal("apps.StatefulSetUpdateStrategy", document))
        out.append(invalid_value(path, found, "must be 'RollingUpdate' or 'OnDelete'"))


_ROLLING_STATEFUL = table(
    number("partition", nonnegative),
    field("maxUnavailable", int_or_percent),
    invalid_if(
        lambda rolling: rolling.get("maxUnavailable") is not None and not amount_or_percent(rolling["maxUnavailable"]),
        "maxUnavailable",
        "cannot be 0",
    ),
    field("maxUnavailable", not_above_100_percent),
)


def _management(document: Document, path: str, out: Causes) -> None:
    policy, here = document.get("podManagementPolicy") or "", f"{path}.podManagementPolicy"
    if not policy:
        out.append(required(here))
    elif policy not in ("OrderedReady", "Parallel"):
        out.append(invalid_value(here, go_value(policy), "must be 'OrderedReady' or 'Parallel'"))


_RETENTION = table(*(value(name, one_of("Retain", "Delete")) for name in ("whenDeleted", "whenScaled")))


def _stateful_template(document: Document, path: str, out: Causes, *, check_template: bool = True) -> None:
    selector, template = document.get("selector"), part(document, "template")
    here, spec = f"{path}.template", part(template, "spec")
    _selector(document, path, out, owner="statefulset")
    if isinstance(selector, dict) and not selector_is_valid(selector):
        out.append(invalid_value(f"{path}.selector", shown_selector(selector), ""))
    else:
        if not (isinstance(selector, dict) and is_empty(selector)) and not _takes(selector, template):
            template_labels(template, here, out)
        inner = {name: item for name, item in spec.items() if name not in ("subdomain", "hostname")}
        claims = [str(part(claim, "metadata").get("name") or "") for claim in parts(document, "volumeClaimTemplates")]
        if claims:
            made = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in sorted(set(claims))]
            inner["volumes"] = [*made, *(each for each in parts(spec, "volumes") if each.get("name") not in claims)]
        if check_template:
            pod_template({**template, "spec": inner}, here, out)
        annotations = part(template, "metadata", "annotations")
        out.extend(check_labels(part(template, "metadata", "labels"), f"{here}.labels"))
        out.extend(check_annotations(annotations, f"{here}.annotations"))
        pod_annotations(annotations, spec, f"{here}.annotations", out)
    _always_running(template, here, "StatefulSet", out)


def _stateful_spec(*rules: Rule, check_template: bool = True) -> Rule:
    return inside(
        "spec",
        _management,
        inside("updateStrategy", _stateful_strategy),
        optional("persistentVolumeClaimRetentionPolicy", _RETENTION),
        *rules[:1],
        *nonnegatives("replicas", "minReadySeconds"),
        optional("ordinals", number("start", nonnegative)),
        *rules[1:],
        lambda spec, path, out: _stateful_template(spec, path, out, check_template=check_template),
    )


_MUTABLE = (
    "replicas", "template", "updateStrategy", "minReadySeconds", "ordinals", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
)  # fmt: skip
_STATEFUL_FORBIDDEN = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_STATEFUL_UPDATE, _STATEFUL_UPDATE_OF_INVALID = _stateful_spec(), _stateful_spec(check_template=False)


def _stateful_update(new: Document, old: Document, out: Causes) -> None:
    problems: Causes = []
    _STATEFUL_UPDATE(old, "", problems)
    (_STATEFUL_UPDATE_OF_INVALID if problems else _STATEFUL_UPDATE)(new, "", out)
    kept, before = (
        {name: item for name, item in part(each_object, "spec").items() if name not in _MUTABLE}
        for each_object in (new, old)
    )
    if kept != before:
        out.append(forbidden_value("spec", _STATEFUL_FORBIDDEN))


STATEFUL_SET = kind(
    _stateful_spec(each("volumeClaimTemplates", inside("spec", CLAIM_SPEC)), value("serviceName", if_filled(dns_label))),
    update=[_stateful_update],
    status=[
        _status(
            "replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas",
            "observedGeneration", "collisionCount",
            total=("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"),
            ready="status.readyReplicas",
        ),
        _collisions,
    ],
)  # fmt: skip

# --- ControllerRevision -----------------------------------------------------------------------------------------------


def _revision_data(document: Document, path: str, out: Causes) -> None:
    data = document.get("data")
    if data is None:
        out.append(required("data", "data is mandatory"))
    elif not isinstance(data, dict):
        out.append(required("data", "data must be a valid JSON object"))


_REVISION = number("revision", nonnegative)
REVISION = kind(
    _REVISION,
    _revision_data,
    update=[lambda new, _old, out: _REVISION(new, "", out), immutable("data", show=raw_values.shown)],
    metadata=("change", "object"),
)
KINDS = {
    "apps/deployments": DEPLOYMENT,
    "apps/replicasets": REPLICA_SET,
    "apps/daemonsets": DAEMON_SET,
    "apps/statefulsets": STATEFUL_SET,
    "apps/controllerrevisions": REVISION,
    "replicationcontrollers": CONTROLLER,
}
