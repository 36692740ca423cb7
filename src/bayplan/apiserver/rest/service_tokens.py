"""Tokens of service accounts: created by the subresource ``token``, verified by TokenReviews.

A token is a JSON Web Token with upstream's claims, signed with a key of this server process. It is valid until it
expires or the server stops.
"""

from __future__ import annotations

import json
from typing import cast

from bayplan.apiserver.fields import managed
from bayplan.apiserver.fields.field_type import field_type
from bayplan.apiserver.model.errors import bad_request, conflict, invalid, invalid_value, not_found
from bayplan.apiserver.model.requests import RequestInfo
from bayplan.apiserver.rest import writing
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.body_types import Target
from bayplan.apiserver.rest.decoding import decode_request
from bayplan.apiserver.rest.hooks import admit_unstored
from bayplan.apiserver.rest.messages import Request
from bayplan.apiserver.rest.options import write_options
from bayplan.apiserver.rest.signing_key import ALGORITHM, decoded, encoded
from bayplan.base.plain_data import Document, part, texts
from bayplan.objects.selectors import quote

ISSUER = "https://kubernetes.default.svc"
_API_VERSION, _KIND = "authentication.k8s.io/v1", "TokenRequest"
_TARGET = Target(_API_VERSION, _KIND, "io.k8s.api.authentication.v1.TokenRequest")
_ZERO: Document = {"spec": {"boundObjectRef": None}, "status": {"token": "", "expirationTimestamp": None}}
_SHORTEST, _LONGEST, _DEFAULT = 600, 2**32, 3600
_BOUND = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


def create_token(backend: Backend, info: RequestInfo, request: Request) -> Document:
    """Return a TokenRequest with its token in `status`.

    Raises:
        ApiError: the service account or the bound object does not exist, or the request is invalid.
    """
    options = write_options(request, "CreateOptions")
    document = decode_request(_TARGET, request, options.validation).document
    metadata = cast("Document", document.setdefault("metadata", {}))
    spec = cast("Document", document.setdefault("spec", {}))
    if spec.get("expirationSeconds") is None:
        spec["expirationSeconds"] = _DEFAULT
    if metadata.get("namespace") not in (None, "", info.namespace):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    writing.check_namespace(backend, info, info.name)
    owner = managed.WriteContext(options.manager, _API_VERSION, field_type(_TARGET.type_name), backend.now(), "token")
    asked: Document = {**document, "spec": {name: value for name, value in spec.items() if value is not None}}
    managers = managed.after_create(owner, _ZERO, asked, {})
    if metadata.get("name") not in (None, "", info.name):
        text = "must match the service account name if specified"
        raise _invalid(info.name, invalid_value("metadata.name", quote(str(metadata["name"])), text))
    account = backend.find("serviceaccounts", info.namespace, info.name)
    if account is None:
        raise not_found("serviceaccounts", "", info.name)
    uid = str(part(account, "metadata").get("uid") or "")
    wanted = metadata.get("uid")
    if wanted and wanted != uid:
        why = f"the UID in the token request ({wanted}) does not match the UID of the service account ({uid})"
        raise conflict(_KIND, "authentication.k8s.io", info.name, why)
    document = admit_unstored(backend, info, request, options, _TARGET, (document, None))
    spec = cast("Document", document["spec"])
    _check_seconds(spec["expirationSeconds"])
    spec["audiences"] = texts(spec, "audiences") or [ISSUER]
    reference = spec.setdefault("boundObjectRef", None)
    bound = {} if reference is None else _bound_object(backend, info, part(spec, "boundObjectRef"))
    token = _signed(backend, _claims(backend, info, uid, spec, bound))
    seconds = cast("int", spec["expirationSeconds"])
    own: Document = {"name": info.name, "namespace": info.namespace, "uid": uid, "creationTimestamp": backend.now()}
    head: Document = {**part(document, "metadata"), **own}
    head.pop("managedFields", None)
    writing.set_managers({"metadata": head}, managers)
    status = {"token": token, "expirationTimestamp": backend.time_after(seconds)}
    return {"kind": _KIND, "apiVersion": _API_VERSION, "metadata": head, "spec": spec, "status": status}


def _invalid(name: str, *causes: object) -> Exception:
    return invalid(_KIND, "authentication.k8s.io", name, list(causes))  # type: ignore[arg-type]


def _check_seconds(seconds: object) -> None:
    if isinstance(seconds, int) and seconds < _SHORTEST:
        text = "may not specify a duration less than 10 minutes"
    elif isinstance(seconds, int) and seconds > _LONGEST:
        text = "may not specify a duration larger than 2^32 seconds"
    else:
        return
    raise _invalid("", invalid_value("spec.expirationSeconds", str(seconds), text))


def _bound_object(backend: Backend, info: RequestInfo, reference: Document) -> dict[str, Document]:
    """Return the claims (name and uid, by kind) of the object that a token is bound to.

    A pod's node is added to the claims.

    Raises:
        ApiError: a token cannot be bound to the object.
    """
    version, kind = str(reference.get("apiVersion") or ""), str(reference.get("kind") or "")
    name = str(reference.get("name") or "")
    if version.count("/") > 1:
        version = ""  # As upstream reads a malformed version.
    if "/" in version or kind not in _BOUND:
        group, _, short = version.rpartition("/")
        raise bad_request(f"cannot bind token to object of type {group}/{short}, Kind={kind}")
    if not name:
        raise bad_request("Name parameter required.")
    table = _BOUND[kind]
    found = backend.find(table, "" if kind == "Node" else info.namespace, name)
    if found is None:
        raise not_found(table, "", name)
    if kind == "Pod" and part(found, "spec").get("serviceAccountName", "") != info.name:
        text = f"cannot bind token for serviceaccount {quote(info.name)} to pod running with different serviceaccount name."
        raise bad_request(text)
    uid, wanted = part(found, "metadata").get("uid"), reference.get("uid")
    if wanted and wanted != uid:
        why = f"the UID in the bound object reference ({wanted}) does not match the UID in record. "
        raise conflict(kind, "", name, why + "The object might have been deleted and then recreated")
    claims = {kind.lower(): _reference(found)}
    node = backend.find("nodes", "", str(part(found, "spec").get("nodeName") or "")) if kind == "Pod" else None
    if node is not None:
        claims["node"] = _reference(node)
    return claims


def _reference(document: Document) -> Document:
    metadata = part(document, "metadata")
    return {"name": metadata.get("name"), "uid": metadata.get("uid")}


def _claims(backend: Backend, info: RequestInfo, uid: str, spec: Document, bound: dict[str, Document]) -> Document:
    now = int(backend.clock())
    return {
        "aud": spec["audiences"],
        "exp": now + cast("int", spec["expirationSeconds"]),
        "iat": now,
        "iss": ISSUER,
        "jti": backend.new_uid(),
        "kubernetes.io": {
            "namespace": info.namespace,
            **bound,
            "serviceaccount": {"name": info.name, "uid": uid},
        },
        "nbf": now,
        "sub": f"system:serviceaccount:{info.namespace}:{info.name}",
    }


def _signed(backend: Backend, claims: Document) -> str:
    key = backend.token_key
    head = encoded(json.dumps({"alg": ALGORITHM, "kid": key.id}, separators=(",", ":")).encode())
    text = f"{head}.{encoded(json.dumps(claims, separators=(',', ':')).encode())}"
    return f"{text}.{key.sign(text)}"


_INVALID = "invalid bearer token"


def _is_ours(token: str) -> bool:
    """Return whether a token is a JSON Web Token that names this server as its issuer."""
    body = token.split(".")[1] if token.count(".") == 2 else ""
    try:
        claims = json.loads(decoded(body))
    except ValueError:
        return False
    return isinstance(claims, dict) and claims.get("iss") == ISSUER


def review_token(backend: Backend, document: Document) -> Document:
    """Return the status of a TokenReview."""
    spec = part(document, "spec")
    token = str(spec.get("token") or "")
    claims = _verified(backend, token)
    wanted = texts(spec, "audiences")
    if claims is None:
        # Upstream verifies only tokens of its own issuer, and then reports why that failed.
        unknown = (
            _INVALID if not _is_ours(token) else f"[{_INVALID}, service account token is not valid yet or has expired]"
        )
        return {"user": {}, "error": unknown}
    audiences = [each for each in texts(claims, "aud") if each in (wanted or [ISSUER])]
    if not audiences:
        mine, theirs = (" ".join(map(quote, each)) for each in (texts(claims, "aud"), wanted or [ISSUER]))
        text = f"[{_INVALID}, token audiences [{mine}] is invalid for the target audiences [{theirs}]]"
        return {"user": {}, "error": text}
    private = part(claims, "kubernetes.io")
    account, namespace = part(private, "serviceaccount"), private.get("namespace")
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    extra: Document = {"authentication.kubernetes.io/credential-id": [f"JTI={claims.get('jti')}"]}
    for name in ("pod", "node"):
        if isinstance(private.get(name), dict):
            extra |= {
                f"authentication.kubernetes.io/{name}-{key}": [value] for key, value in part(private, name).items()
            }
    user: Document = {"username": claims["sub"], "uid": account.get("uid"), "groups": groups, "extra": extra}
    return {"authenticated": True, "user": user, "audiences": audiences}


def _verified(backend: Backend, token: str) -> Document | None:
    """Return the claims of a valid token, else None.

    The token must be signed by this server and not expired, and its service account must still exist.
    """
    text, _, signature = token.rpartition(".")
    if not _is_ours(token) or not backend.token_key.verifies(text, signature):
        return None
    claims = cast("Document", json.loads(decoded(text.rpartition(".")[2])))
    private = part(claims, "kubernetes.io")
    account = part(private, "serviceaccount")
    found = backend.find("serviceaccounts", str(private.get("namespace")), str(account.get("name")))
    if found is None or part(found, "metadata").get("uid") != account.get("uid"):
        return None
    expires = claims.get("exp")
    return claims if isinstance(expires, int) and expires > backend.clock() else None
