"""Validation rules of CustomResourceDefinitions, except for their schemas.

Upstream checks the internal form. There, a schema, subresources or columns that are equal in all versions are moved to
the top level, and checked once.
"""

from __future__ import annotations

from bayplan.apiserver.model.errors import Cause, forbidden_value, invalid_value, not_supported, required
from bayplan.apiserver.validation.engine import Causes, go_value, immutable, kind, optional, sent
from bayplan.apiserver.validation.field_paths import find_field
from bayplan.apiserver.validation.hook_clients import client_service, hook_url, review_versions
from bayplan.apiserver.validation.internal_json import shown_as
from bayplan.apiserver.validation.schemas import check_schema, has_defaults
from bayplan.base.go_text.quoting import GoTextError
from bayplan.base.go_text.urls import parse_request_url
from bayplan.base.plain_data import Document, part, parts, texts
from bayplan.objects.names import check_dns1035_label, check_dns1123_subdomain
from bayplan.objects.selectors import quote

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
APPROVED = "api-approved.kubernetes.io"
"""Annotation of a definition in a protected group: a URL, or a text that starts with ``unapproved``."""
_MIXED_CASE = "may have mixed case, but should otherwise match: "
_STRATEGIES = ("None", "Webhook")
_CLIENT_SERVICE = client_service(namespace_first=True)


def _joined(found: object, path: str, out: Causes, *, intro: str = "", lower: bool = False) -> None:
    """Check a DNS label. Upstream joins its errors into one message."""
    text = str(found or "")
    problems = check_dns1035_label(text.lower() if lower else text)
    if problems:
        out.append(invalid_value(path, quote(text), intro + ",".join(problems)))


# --- names ------------------------------------------------------------------------------------------------------------


def _names(names: Document, path: str, out: Causes) -> None:
    for name, lower in (("plural", False), ("singular", False), ("kind", True), ("listKind", True)):
        if names.get(name):
            _joined(names[name], f"{path}.{name}", out, intro=_MIXED_CASE if lower else "", lower=lower)
    for index, name in enumerate(texts(names, "shortNames")):
        _joined(name, f"{path}.shortNames[{index}]", out)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        detail = "kind and listKind may not be the same"
        out.append(invalid_value(f"{path}.listKind", go_value(names["listKind"]), detail))
    for index, name in enumerate(texts(names, "categories")):
        _joined(name, f"{path}.categories[{index}]", out)


def _definition_name(definition: Document, path: str, out: Causes) -> None:
    spec, metadata = part(definition, "spec"), part(definition, "metadata")
    wanted = f"{part(spec, 'names').get('plural') or ''}.{spec.get('group') or ''}"
    for name in ("generateName", "name"):
        found = str(metadata.get(name) or "")
        if found and found != wanted:
            out.append(invalid_value(f"metadata.{name}", quote(found), 'must be spec.names.plural+"."+spec.group'))


def _group(spec: Document, out: Causes) -> None:
    group = str(spec.get("group") or "")
    problems = check_dns1123_subdomain(group)
    if not group:
        out.append(required("spec.group"))
    elif problems:
        out.append(invalid_value("spec.group", quote(group), ",".join(problems)))
    elif "." not in group:
        out.append(invalid_value("spec.group", quote(group), "should be a domain with at least one dot"))


def _one_of(found: object, path: str, accepted: tuple[str, ...], out: Causes) -> None:
    if not found:
        out.append(required(path))
    elif found not in accepted:
        out.append(not_supported(path, go_value(found), accepted))


# --- columns and subresources -----------------------------------------------------------------------------------------


def _json_path(text: str, path: str, out: Causes, starts: tuple[str, ...] = ()) -> None:
    if not text.startswith("."):
        out.append(invalid_value(path, quote(text), "must be a simple json path starting with ."))
    elif starts and not text.startswith(starts):
        under_what = " or ".join(start[:-1] for start in starts)
        either = "either " if len(starts) > 1 else ""
        out.append(invalid_value(path, quote(text), f"should be a json path under {either}{under_what}"))


def _column(column: Document, path: str, out: Causes) -> None:
    if not column.get("name"):
        out.append(required(f"{path}.name"))
    kind_of_column, form = str(column.get("type") or ""), str(column.get("format") or "")
    types, formats = (f"must be one of {','.join(names)}" for names in (_COLUMN_TYPES, _COLUMN_FORMATS))
    if not kind_of_column:
        out.append(required(f"{path}.type", types.replace(",", ",")))
    elif kind_of_column not in _COLUMN_TYPES:
        out.append(invalid_value(f"{path}.type", quote(kind_of_column), types))
    if form and form not in _COLUMN_FORMATS:
        out.append(invalid_value(f"{path}.format", quote(form), formats))
    text = str(column.get("jsonPath") or "")
    if not text:
        out.append(required(f"{path}.JSONPath"))
    else:
        _json_path(text, f"{path}.JSONPath", out)


def _subresources(found: object, path: str, out: Causes) -> None:
    scale = found.get("scale") if isinstance(found, dict) else None
    if not isinstance(scale, dict):
        return
    for name, starts in (
        ("specReplicasPath", (".spec.",)),
        ("statusReplicasPath", (".status.",)),
        ("labelSelectorPath", (".spec.", ".status.")),
    ):
        text, here = str(scale.get(name) or ""), f"{path}.scale.{name}"
        if text:
            _json_path(text, here, out, starts)
        elif name != "labelSelectorPath":
            out.append(required(here))


def _selectable(version: Document, schema: object, path: str, out: Causes) -> None:
    if version.get("selectableFields") and not isinstance(schema, dict):
        # A schema of all versions is declared elsewhere in upstream's internal type.
        detail = "may only be set when `version.schema.openAPIV3Schema` is not included"
        if path == "spec":
            detail = "may only be set when validations.schema is included"
        out.append(invalid_value(f"{path}.selectableFields", '""', detail))
        return
    seen: set[str] = set()
    for index, selectable in enumerate(parts(version, "selectableFields")):
        here, text = f"{path}.selectableFields[{index}].jsonPath", str(selectable.get("jsonPath") or "")
        if not text:
            out.append(required(here))
            continue
        inner, why = find_field(schema if isinstance(schema, dict) else {}, text)
        kind_of_field = inner.get("type") if isinstance(inner, dict) else None
        if why:
            out.append(invalid_value(here, quote(text), f"is an invalid path: {why}"))
            continue
        if text.split(".")[1] == "metadata":
            out.append(invalid_value(here, quote(text), "must not point to fields in metadata"))
        if kind_of_field not in ("string", "boolean", "integer"):
            detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with "
            out.append(invalid_value(here, quote(text), f"{detail}formats are allowed."))
        if text in seen:
            out.append(Cause("FieldValueDuplicate", f"Duplicate value: {quote(text)}", here))
        seen.add(text)
    if len(seen) > 8:
        here = f"{path}.selectableFields"
        out.append(Cause("FieldValueTooMany", f"Too many: {len(seen)}: must have at most 8 items", here))


# --- versions ---------------------------------------------------------------------------------------------------------


def _schema_of(version: Document) -> object:
    return part(version, "schema").get("openAPIV3Schema")


def _common(versions: list[Document], name: str) -> bool:
    """Return whether all versions have the same non-empty value, which the internal form moves to the top level."""
    first = versions[0].get(name) if versions else None
    return first not in (None, []) and all(version.get(name) == first for version in versions)


def _shown_versions(versions: list[Document], common: set[str], whole: object) -> str:
    """Return the versions as messages show the internal structs."""
    if not versions:
        return "null" if whole is None else "[]"
    own = [{name: item for name, item in version.items() if name not in common} for version in versions]
    return shown_as("[]apiextensions.CustomResourceDefinitionVersion")(own)


def _deprecation(version: Document, path: str, out: Causes) -> None:
    found = version.get("deprecationWarning")
    if found is None:
        return
    text, problems = str(found), []
    if not version.get("deprecated"):
        problems = ["can only be set for deprecated versions"]
    else:
        if len(text.encode()) > 256:
            problems.append("must be <= 256 characters long")
        if not text:
            problems.append("must not be an empty string")
        bad = next((index for index, character in enumerate(text) if not character.isprintable()), None)
        if bad is not None:
            where = f"non-printable character found at index {bad}"
            problems.append(f"must only contain printable UTF-8 characters; {where}")
    for problem in problems:
        out.append(invalid_value(f"{path}.deprecationWarning", quote(text), problem))


def _version(version: Document, path: str, common: set[str], out: Causes) -> None:
    _deprecation(version, path, out)
    status = part(version, "subresources").get("status") is not None
    if "schema" not in common and isinstance(version.get("schema"), dict):
        check_schema(_schema_of(version), f"{path}.schema", out, has_status=status)
    if "subresources" not in common:
        _subresources(version.get("subresources"), f"{path}.subresources", out)
    if "additionalPrinterColumns" not in common:
        for index, column in enumerate(parts(version, "additionalPrinterColumns")):
            _column(column, f"{path}.additionalPrinterColumns[{index}]", out)
    if "selectableFields" not in common:
        _selectable(version, None if "schema" in common else _schema_of(version), path, out)


def _versions(spec: Document, common: set[str], out: Causes) -> None:
    versions = parts(spec, "versions")
    if "schema" not in common:
        for index, version in enumerate(versions):
            if not isinstance(_schema_of(version), dict):
                out.append(required(f"spec.versions[{index}].schema.openAPIV3Schema"))
    elif versions and not isinstance(_schema_of(versions[0]), dict):
        out.extend(required(f"spec.versions[{index}].schema.openAPIV3Schema") for index in range(len(versions)))
    if spec.get("preserveUnknownFields") and any(has_defaults(_schema_of(each)) for each in versions):
        detail = "must be false in order to use defaults in the schema"
        out.append(invalid_value("spec.preserveUnknownFields", "true", detail))
    for index, version in enumerate(versions):
        _joined(version.get("name"), f"spec.versions[{index}].name", out)
        _version(version, f"spec.versions[{index}]", common, out)
    names = [version.get("name") for version in versions]
    shown = _shown_versions(versions, common, sent(spec, "versions"))
    if len(set(names)) < len(names):
        out.append(invalid_value("spec.versions", shown, "must contain unique version names"))
    if sum(bool(version.get("storage")) for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        out.append(invalid_value("spec.versions", shown, detail))
    if versions and names[0]:
        _joined(names[0], "spec.version", out)


# --- the whole --------------------------------------------------------------------------------------------------------


def _client(client: Document, path: str, out: Causes) -> None:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        out.append(required(path, "exactly one of url or service is required"))
    elif url is not None:
        hook_url(url, f"{path}.url", out)
    else:
        optional("service", _CLIENT_SERVICE)(client, path, out)


def _conversion(spec: Document, out: Causes) -> None:
    conversion, here = spec.get("conversion"), "spec.conversion"
    if not isinstance(conversion, dict):
        return
    _one_of(conversion.get("strategy"), f"{here}.strategy", _STRATEGIES, out)
    webhook = part(conversion, "webhook")
    client, versions = webhook.get("clientConfig"), texts(webhook, "conversionReviewVersions")
    if conversion.get("strategy") != "Webhook":
        detail = "should not be set when strategy is not set to Webhook"
        for name, found in (("webhookClientConfig", client), ("conversionReviewVersions", versions)):
            if found is not None and found != []:
                out.append(forbidden_value(f"{here}.{name}", detail))
        return
    if not isinstance(client, dict):
        out.append(required(f"{here}.webhookClientConfig", "required when strategy is set to Webhook"))
    else:
        _client(client, f"{here}.webhookClientConfig", out)
    at = f"{here}.conversionReviewVersions"
    if not versions:
        out.append(required(at))
    else:
        review_versions(versions, at, out)


def _status(definition: Document, out: Causes) -> None:
    """Check the stored versions.

    The accepted names need no check here, because the server copies them from the spec.
    """
    status, here = part(definition, "status"), "status.storedVersions"
    stored, versions = texts(status, "storedVersions"), parts(part(definition, "spec"), "versions")
    if not stored:
        out.append(invalid_value(here, "null", "must have at least one stored version"))
        return
    met: set[object] = set()
    for version in versions:
        # Upstream removes each name once, so a second version with the same name counts as missing.
        if version.get("storage") and (version.get("name") not in stored or version.get("name") in met):
            detail = f"must have the storage version {version.get('name') or ''}"
            out.append(invalid_value(here, go_value(stored), detail))
        met.add(version.get("name"))
    known = [version.get("name") for version in versions]
    for index, name in enumerate(stored):
        if name not in known:
            detail = f"missing from spec.versions; {name} was previously a storage version, and must remain in "
            detail += f"spec.versions until a storage migration ensures no data remains persisted in {name} and "
            detail += f"removes {name} from status.storedVersions"
            out.append(invalid_value(f"{here}[{index}]", quote(name), detail))


def is_protected_group(group: str) -> bool:
    """Return whether a group belongs to the Kubernetes community, whose definitions need an approval."""
    return f".{group}".endswith((".k8s.io", ".kubernetes.io"))


def approval(definition: Document) -> tuple[str, str]:
    """Return the state of the approval of a definition, which a protected group needs, and a message about it.

    The state is ApprovedAnnotation, UnapprovedAnnotation, MissingAnnotation or InvalidAnnotation.
    """
    found = str(part(definition, "metadata", "annotations").get(APPROVED) or "")
    wanted = f'protected groups must have approval annotation "{APPROVED}"'
    source = "see https://github.com/kubernetes/enhancements/pull/1111"
    if not found:
        return "MissingAnnotation", f"{wanted}, {source}"
    if found.startswith("unapproved"):
        return "UnapprovedAnnotation", f"not approved: {quote(found)}"
    try:
        url = parse_request_url(found)
    except GoTextError:
        url = None
    if url is None or not url.scheme or not url.host:
        return "InvalidAnnotation", f'{wanted} with either a URL or a reason starting with "unapproved", {source}'
    return "ApprovedAnnotation", f"approved in {found}"


def _approval(definition: Document, out: Causes) -> None:
    if not is_protected_group(str(part(definition, "spec").get("group") or "")):
        return
    here, (state, message) = f"metadata.annotations[{APPROVED}]", approval(definition)
    if state == "MissingAnnotation":
        out.append(required(here, message))
    elif state == "InvalidAnnotation":
        found = str(part(definition, "metadata", "annotations").get(APPROVED))
        out.append(invalid_value(here, quote(found), message))


def _spec(spec: Document, out: Causes) -> None:
    versions = parts(spec, "versions")
    names = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")
    common = {name for name in names if _common(versions, name)}
    _group(spec, out)
    _one_of(spec.get("scope"), "spec.scope", ("Cluster", "Namespaced"), out)
    _versions(spec, common, out)
    of_spec = part(spec, "names")
    for name in ("plural", "singular", "kind", "listKind"):
        if not of_spec.get(name):
            out.append(required(f"spec.names.{name}"))
    _names(of_spec, "spec.names", out)
    if "schema" in common:
        status = any(part(version, "subresources").get("status") is not None for version in versions)
        check_schema(_schema_of(versions[0]), "spec.validation", out, has_status=status)
    if "subresources" in common:
        _subresources(versions[0].get("subresources"), "spec.subresources", out)
    if "additionalPrinterColumns" in common:
        for index, column in enumerate(parts(versions[0], "additionalPrinterColumns")):
            _column(column, f"spec.additionalPrinterColumns[{index}]", out)
    if "selectableFields" in common:
        _selectable(versions[0], _schema_of(versions[0]) if "schema" in common else None, "spec", out)
    conversion = part(spec, "conversion")
    if conversion and conversion.get("strategy") != "None" and spec.get("preserveUnknownFields"):
        detail = "must be None if spec.preserveUnknownFields is true"
        out.append(invalid_value("spec.conversion.strategy", go_value(conversion.get("strategy") or ""), detail))
    _conversion(spec, out)


def _preserves(definition: Document, out: Causes) -> None:
    if part(definition, "spec").get("preserveUnknownFields"):
        detail = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        out.append(invalid_value("spec.preserveUnknownFields", "true", detail))


def _create(definition: Document, path: str, out: Causes) -> None:
    _definition_name(definition, path, out)
    _spec(part(definition, "spec"), out)
    _status(definition, out)
    _approval(definition, out)
    _preserves(definition, out)


_NAMES_STAY = (immutable("spec.scope", zero=""), immutable("spec.names.kind", zero=""))
_ALWAYS_STAY = (immutable("spec.group", zero=""), immutable("spec.names.plural", zero=""))


def _update(new: Document, old: Document, out: Causes) -> None:
    _spec(part(new, "spec"), out)
    conditions = parts(part(old, "status"), "conditions")
    established = any(each.get("type") == "Established" and each.get("status") == "True" for each in conditions)
    for check in (*(_NAMES_STAY if established else ()), *_ALWAYS_STAY):
        check(new, old, out)
    _status(new, out)
    approvals = [part(each, "metadata", "annotations").get(APPROVED) for each in (new, old)]
    if approvals[0] != approvals[1]:
        _approval(new, out)
    if not part(old, "spec").get("preserveUnknownFields"):
        _preserves(new, out)


def _status_update(new: Document, _old: Document, out: Causes) -> None:
    _names(part(new, "status", "acceptedNames"), "status.acceptedNames", out)


DEFINITION = kind(_create, update=[_update], status=[_status_update])
KINDS = {"apiextensions.k8s.io/customresourcedefinitions": DEFINITION}
