"""What is wrong with a pod's spec, of a pod or of a template: containers, scheduling fields, in upstream's order and words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bayplan.apiserver.kinds.affinity_validation import check_affinity
from bayplan.apiserver.kinds.resource_validation import check_container_resources
from bayplan.apiserver.kinds.strategy import part, parts
from bayplan.apiserver.rest.errors import Cause, duplicate, forbidden_value, invalid_value, not_supported, required
from bayplan.apiserver.rest.object_meta import check_labels
from bayplan.base.plain_data import Document
from bayplan.base.ports import LARGEST_PORT
from bayplan.objects.names import check_dns1123_label, check_dns1123_subdomain, check_label_value, check_qualified_name
from bayplan.objects.selectors import quote

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
_INCLUSIONS = ("Honor", "Ignore")
_INT32_MAX = 2**31 - 1


def check_pod_spec(spec: Document, field: str) -> list[Cause]:
    """Return what is wrong with a spec.

    Args:
        spec: defaulted.
        field: its path.
    """
    causes = _check_volumes(parts(spec, "volumes"), f"{field}.volumes")
    names: set[str] = set()
    containers = parts(spec, "containers")
    if not containers:
        causes.append(required(f"{field}.containers"))
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(parts(spec, kind)):
            causes += _check_container(container, f"{field}.{kind}[{index}]", names, init=kind == "initContainers")
    causes += _check_host_ports(containers, f"{field}.containers")
    causes += _check_choices(spec, field)
    causes += check_labels(part(spec, "nodeSelector"), f"{field}.nodeSelector")
    causes += check_affinity(part(spec, "affinity"), f"{field}.affinity")
    causes += _check_gates(parts(spec, "schedulingGates"), f"{field}.schedulingGates")
    causes += _check_spread(parts(spec, "topologySpreadConstraints"), f"{field}.topologySpreadConstraints")
    causes += _check_names(spec, field)
    causes += check_tolerations(parts(spec, "tolerations"), f"{field}.tolerations")
    return causes + _check_end(spec, field)


def _check_choices(spec: Document, field: str) -> list[Cause]:
    causes: list[Cause] = []
    for name, choices in (("restartPolicy", _RESTART_POLICIES), ("dnsPolicy", _DNS_POLICIES)):
        value = str(spec.get(name) or "")
        if not value:
            causes.append(required(f"{field}.{name}"))
        elif value not in choices:
            causes.append(not_supported(f"{field}.{name}", quote(value), choices))
    return causes


def _check_names(spec: Document, field: str) -> list[Cause]:
    causes = _check_texts(spec, field, ("serviceAccountName",), check_dns1123_subdomain)
    causes += check_node_name(spec, field)
    deadline = spec.get("activeDeadlineSeconds")
    if isinstance(deadline, int) and not 1 <= deadline <= _INT32_MAX:
        text = f"must be between 1 and {_INT32_MAX}, inclusive"
        causes.append(invalid_value(f"{field}.activeDeadlineSeconds", str(deadline), text))
    return causes + _check_texts(spec, field, ("hostname", "subdomain"), check_dns1123_label)


def check_node_name(spec: Document, field: str) -> list[Cause]:
    """Return what is wrong with the name of the node that a pod comes with, if it does."""
    return _check_texts(spec, field, ("nodeName",), check_dns1123_subdomain)


def _check_texts(
    spec: Document, field: str, names: Sequence[str], check: Callable[[str], Sequence[str]]
) -> list[Cause]:
    """Return what is wrong with the fields of these names that are set."""
    values = [(name, str(spec[name])) for name in names if spec.get(name)]
    return [invalid_value(f"{field}.{name}", quote(value), each) for name, value in values for each in check(value)]


def _check_end(spec: Document, field: str) -> list[Cause]:
    causes = _check_texts(spec, field, ("priorityClassName", "runtimeClassName"), check_dns1123_subdomain)
    policy = spec.get("preemptionPolicy")
    if policy and policy not in ("Never", "PreemptLowerPriority"):
        causes.append(not_supported(f"{field}.preemptionPolicy", quote(str(policy)), ("Never", "PreemptLowerPriority")))
    return causes


# --- volumes and containers -------------------------------------------------------------------------------------------


def _check_volumes(volumes: Sequence[Document], field: str) -> list[Cause]:
    causes: list[Cause] = []
    seen: set[str] = set()
    for index, volume in enumerate(volumes):
        here, name = f"{field}[{index}]", str(volume.get("name") or "")
        sources = [each for each in volume if each != "name"]
        causes += [forbidden_value(f"{here}.{each}", "may not specify more than 1 volume type") for each in sources[1:]]
        if not name:
            causes.append(required(f"{here}.name"))
        else:
            causes += [invalid_value(f"{here}.name", quote(name), each) for each in check_dns1123_label(name)]
            if name in seen:
                causes.append(duplicate(f"{here}.name", quote(name)))
        seen.add(name)
    return causes


def _check_container(container: Document, field: str, names: set[str], *, init: bool) -> list[Cause]:
    causes: list[Cause] = []
    name = str(container.get("name") or "")
    if not name:
        causes.append(required(f"{field}.name"))
    else:
        causes += [invalid_value(f"{field}.name", quote(name), each) for each in check_dns1123_label(name)]
        if name in names:
            causes.append(duplicate(f"{field}.name", quote(name)))
        names.add(name)
    image = str(container.get("image") or "")
    if not image:
        causes.append(required(f"{field}.image"))
    elif image.strip() != image:
        causes.append(invalid_value(f"{field}.image", quote(image), "must not have leading or trailing whitespace"))
    causes += _check_ports(parts(container, "ports"), f"{field}.ports")
    causes += _check_environment(parts(container, "env"), f"{field}.env")
    policy = container.get("imagePullPolicy")
    if policy not in _PULL_POLICIES:
        causes.append(not_supported(f"{field}.imagePullPolicy", quote(str(policy or "")), _PULL_POLICIES))
    restart = container.get("restartPolicy")
    if init and restart and restart != "Always":
        causes.append(not_supported(f"{field}.restartPolicy", quote(str(restart)), ("Always",)))
    return causes + check_container_resources(part(container, "resources"), f"{field}.resources")


def _check_ports(ports: Sequence[Document], field: str) -> list[Cause]:
    causes: list[Cause] = []
    for index, port in enumerate(ports):
        here = f"{field}[{index}]"
        number, host = port.get("containerPort", 0), port.get("hostPort", 0)
        between = f"must be between 1 and {LARGEST_PORT}, inclusive"
        if number == 0:
            causes.append(required(f"{here}.containerPort"))
        elif not isinstance(number, int) or not 1 <= number <= LARGEST_PORT:
            causes.append(invalid_value(f"{here}.containerPort", str(number), between))
        if host and not (isinstance(host, int) and 1 <= host <= LARGEST_PORT):
            causes.append(invalid_value(f"{here}.hostPort", str(host), between))
        protocol = str(port.get("protocol") or "")
        if protocol not in _PROTOCOLS:
            causes.append(not_supported(f"{here}.protocol", quote(protocol), _PROTOCOLS))
    return causes


def _check_environment(variables: Sequence[Document], field: str) -> list[Cause]:
    causes: list[Cause] = []
    for index, variable in enumerate(variables):
        if not variable.get("name"):
            causes.append(required(f"{field}[{index}].name"))
        if variable.get("value") and variable.get("valueFrom"):
            text = "may not be specified when `value` is not empty"
            causes.append(invalid_value(f"{field}[{index}].valueFrom", '""', text))
    return causes


def _check_host_ports(containers: Sequence[Document], field: str) -> list[Cause]:
    causes: list[Cause] = []
    seen: set[str] = set()
    for at, container in enumerate(containers):
        for index, port in enumerate(parts(container, "ports")):
            if not port.get("hostPort"):
                continue
            text = f"{port.get('protocol')}/{port.get('hostIP') or ''}/{port['hostPort']}"
            if text in seen:
                causes.append(duplicate(f"{field}[{at}].ports[{index}].hostPort", quote(text)))
            seen.add(text)
    return causes


# --- scheduling -------------------------------------------------------------------------------------------------------


def _check_gates(gates: Sequence[Document], field: str) -> list[Cause]:
    causes: list[Cause] = []
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = str(gate.get("name") or "")
        causes += [invalid_value(f"{field}[{index}]", quote(name), each) for each in check_qualified_name(name)]
        if name in seen:
            causes.append(duplicate(f"{field}[{index}]", quote(name)))
        seen.add(name)
    return causes


def check_tolerations(tolerations: Sequence[Document], field: str) -> list[Cause]:
    """Return what is wrong with tolerations."""
    causes: list[Cause] = []
    for index, toleration in enumerate(tolerations):
        here = f"{field}[{index}]"
        key, value = str(toleration.get("key") or ""), str(toleration.get("value") or "")
        operator, effect = str(toleration.get("operator") or ""), str(toleration.get("effect") or "")
        if key:
            causes += [invalid_value(f"{here}.key", quote(key), each) for each in check_qualified_name(key)]
        elif operator != "Exists":
            text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            causes.append(invalid_value(f"{here}.operator", quote(operator), text))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            causes.append(invalid_value(f"{here}.effect", quote(effect), text))
        causes += _check_toleration_operator(operator, value, here)
        if effect and effect not in _EFFECTS:
            causes.append(not_supported(f"{here}.effect", quote(effect), _EFFECTS))
    return causes


def _check_toleration_operator(operator: str, value: str, field: str) -> list[Cause]:
    if operator in ("", "Equal"):
        problems = check_label_value(value)
        return [invalid_value(f"{field}.operator", quote(value), "; ".join(problems))] if problems else []
    if operator == "Exists":
        text = "value must be empty when `operator` is 'Exists'"
        return [invalid_value(f"{field}.operator", quote(value), text)] if value else []
    return [not_supported(f"{field}.operator", quote(operator), ("Equal", "Exists"))]


def _check_spread(constraints: Sequence[Document], field: str) -> list[Cause]:
    causes: list[Cause] = []
    pairs = [(str(each.get("topologyKey") or ""), str(each.get("whenUnsatisfiable") or "")) for each in constraints]
    for index, constraint in enumerate(constraints):
        here, (key, action) = f"{field}[{index}]", pairs[index]
        skew = constraint.get("maxSkew", 0)
        if not isinstance(skew, int) or skew <= 0:
            causes.append(invalid_value(f"{here}.maxSkew", str(skew), "must be greater than zero"))
        causes += check_topology_key(key, f"{here}.topologyKey", once=True)
        if action not in _UNSATISFIABLE:
            causes.append(not_supported(f"{here}.whenUnsatisfiable", quote(action), _UNSATISFIABLE))
        if (key, action) in pairs[index + 1 :]:
            causes.append(duplicate(f"{here}.{{topologyKey, whenUnsatisfiable}}", quote(f"{{{key}, {action}}}")))
        causes += _check_min_domains(constraint, action, f"{here}.minDomains")
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            value = constraint.get(name)
            if value is not None and value not in _INCLUSIONS:
                causes.append(not_supported(f"{here}.{name}", quote(str(value)), _INCLUSIONS))
    return causes


def _check_min_domains(constraint: Document, action: str, field: str) -> list[Cause]:
    number = constraint.get("minDomains")
    if not isinstance(number, int):
        return []
    causes = []
    if number <= 0:
        causes.append(invalid_value(field, str(number), "must be greater than zero"))
    if action != "DoNotSchedule":
        text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        causes.append(invalid_value(field, str(number), text))
    return causes


def check_topology_key(key: str, field: str, *, once: bool = False) -> list[Cause]:
    """Return what is wrong with a topology key.

    Args:
        key: to check.
        field: its path.
        once: an empty key is only called missing, not malformed as well.
    """
    causes = [required(field, "can not be empty")] if not key else []
    if key or not once:
        causes += [invalid_value(field, quote(key), each) for each in check_qualified_name(key)]
    return causes
