"""Validation rules of APIServices and CertificateSigningRequests."""

from __future__ import annotations

import base64
import binascii

from bayplan.apiserver.model.errors import duplicate, invalid_value, required, too_long
from bayplan.apiserver.model.object_meta import check_path_segment
from bayplan.apiserver.validation.engine import (
    Causes,
    at_least,
    field,
    for_update,
    go_value,
    if_filled,
    inside,
    invalid_if,
    items,
    kind,
    must,
    need,
    number,
    one_of,
    table,
    value,
    when,
)
from bayplan.apiserver.validation.formats import dns_1035_label, dns_subdomain
from bayplan.apiserver.validation.hook_clients import service_port
from bayplan.apiserver.validation.request_status import APPROVAL, STATUS
from bayplan.base.plain_data import Document, part, texts
from bayplan.objects.names import check_dns1123_label, check_dns1123_subdomain
from bayplan.objects.selectors import quote

# --- APIService -------------------------------------------------------------------------------------------------------


def _service_name(service: Document, path: str, out: Causes) -> None:
    spec, metadata = part(service, "spec"), part(service, "metadata")
    wanted = f"{spec.get('version') or ''}.{spec.get('group') or ''}"
    for name in ("generateName", "name"):
        found = str(metadata.get(name) or "")
        if found and found != wanted and not check_path_segment(found):
            detail = f'must be `spec.version+"."+spec.group`: {quote(wanted)}'
            out.append(invalid_value(f"metadata.{name}", quote(found), detail))


def _group(spec: Document, path: str, out: Causes) -> None:
    if not spec.get("group") and spec.get("version") != "v1":
        out.append(required(f"{path}.group", "only v1 may have an empty group and it better be legacy kube"))


def _bundle(spec: Document, path: str, out: Causes) -> None:
    size = len(base64.b64decode(str(spec.get("caBundle") or "")))
    if size:
        detail = "local APIServices may not have a caBundle"
        out.append(invalid_value(f"{path}.caBundle", quote(f"{size} bytes"), detail))


_LOCAL = (
    _bundle,
    invalid_if(
        lambda spec: bool(spec.get("insecureSkipTLSVerify")),
        "insecureSkipTLSVerify",
        "local APIServices may not have insecureSkipTLSVerify",
    ),
)
_REMOTE = (
    inside("service", need("namespace"), need("name"), number("port", service_port)),
    invalid_if(
        lambda spec: bool(spec.get("insecureSkipTLSVerify") and spec.get("caBundle")),
        "insecureSkipTLSVerify",
        "may not be true if caBundle is present",
    ),
)
API_SERVICE = kind(
    _service_name,
    inside(
        "spec",
        _group,
        value("group", if_filled(dns_subdomain)),
        value("version", dns_1035_label),
        number(
            "groupPriorityMinimum",
            must(lambda found: isinstance(found, int) and 0 < found <= 20000, "must be positive and less than 20000"),
        ),
        number(
            "versionPriority",
            must(lambda found: isinstance(found, int) and 0 < found <= 1000, "must be positive and less than 1000"),
        ),
        when(lambda spec: spec.get("service") is None, *_LOCAL, otherwise=_REMOTE),
    ),
    metadata=("change", "object"),
)

# --- CertificateSigningRequest ----------------------------------------------------------------------------------------

_USAGES = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
    "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping",
)  # fmt: skip
_MAX_DOMAIN, _MAX_PATH = 253, 253 + 63 + 1
_BEGIN, _END = "-----BEGIN CERTIFICATE REQUEST-----", "-----END CERTIFICATE REQUEST-----"


def signer_name(found: object, path: str, out: Causes) -> None:
    """Check the name of a signer, such as ``example.com/name``."""
    text = str(found)
    if not text:
        out.append(required(path))
        return
    segments = text.split("/")
    if len(segments) != 2:
        detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        out.append(invalid_value(path, quote(text), detail))
        return
    domain, name = segments
    if len(domain) > _MAX_DOMAIN:
        out.append(too_long(path, _MAX_DOMAIN))
    for segment, check in ((domain, check_dns1123_label), (name, check_dns1123_subdomain)):
        for label in segment.split("."):
            problems = check(label)
            for problem in problems:
                detail = f"validating label {quote(label)}: {problem}"
                out.append(invalid_value(path, quote(segment), detail))
            if problems:
                break
        if segment is domain and "." not in domain:
            detail = "should be a domain with at least two segments separated by dots"
            out.append(invalid_value(path, quote(domain), detail))
    if len(text) > _MAX_DOMAIN + _MAX_PATH + 1:
        out.append(too_long(path, _MAX_DOMAIN + _MAX_PATH + 1))


def _request(spec: Document, path: str, out: Causes) -> None:
    found = spec.get("request")
    text = base64.b64decode(str(found or "")).decode("latin-1")
    body = text.partition(_BEGIN)[2].partition(_END)[0]
    try:
        is_block = bool(body) and bool(base64.b64decode("".join(body.split()), validate=True))
    except binascii.Error:
        is_block = False
    if not is_block:
        shown = quote(str(found)) if found is not None else "null"
        out.append(invalid_value(f"{path}.request", shown, "PEM block type must be CERTIFICATE REQUEST"))


def _unique_usages(spec: Document, path: str, out: Causes) -> None:
    usages = texts(spec, "usages")
    for index, usage in enumerate(usages):
        if usage in usages[:index]:
            out.append(duplicate(f"{path}.usages[{index}]", quote(usage)))


_EXPIRATION = at_least(600, "may not specify a duration less than 600 seconds (10 minutes)")


def _legacy_signer(found: object, path: str, out: Causes) -> None:
    if found == "kubernetes.io/legacy-unknown":
        detail = "the legacy signerName is not allowed via this API version"
        out.append(invalid_value(path, go_value(found), detail))
    else:
        signer_name(found, path, out)


_SPEC = table(
    _request,
    need("usages", items(one_of(*_USAGES))),
    _unique_usages,
    value("signerName", _legacy_signer),
    field("expirationSeconds", _EXPIRATION),
)
SIGNING_REQUEST = kind(
    inside("spec", _SPEC), status=[for_update(inside("spec", _SPEC)), STATUS], metadata=("object", "change")
)
APPROVED_REQUEST = kind(status=[for_update(inside("spec", _SPEC)), APPROVAL], metadata=("object", "change"))
KINDS = {
    "apiregistration.k8s.io/apiservices": API_SERVICE,
    "certificates.k8s.io/certificatesigningrequests": SIGNING_REQUEST,
    "certificates.k8s.io/certificatesigningrequests/approval": APPROVED_REQUEST,
}
