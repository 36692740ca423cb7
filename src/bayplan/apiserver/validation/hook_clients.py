"""Validation rules of the URLs, services and review versions of webhooks, conversion webhooks and APIServices."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from bayplan.apiserver.model.errors import invalid_value, required
from bayplan.apiserver.validation.engine import Causes, Rule, field, go_value, value
from bayplan.base.plain_data import Document
from bayplan.objects.names import check_dns1035_label, check_dns1123_subdomain
from bayplan.objects.selectors import quote

_REVIEW_VERSIONS = ("v1", "v1beta1")
_FORM = "; desired format: https://host[/path]"


def review_versions(versions: list[str], path: str, out: Causes) -> None:
    """Check the versions of reviews that a webhook accepts. The server sends v1 or v1beta1."""
    for index, version in enumerate(versions):
        if version in versions[:index]:
            out.append(invalid_value(f"{path}[{index}]", quote(version), "duplicate version"))
            continue
        for problem in check_dns1035_label(version):
            out.append(invalid_value(f"{path}[{index}]", quote(version), problem))
    if not set(versions) & set(_REVIEW_VERSIONS):
        out.append(invalid_value(path, go_value(versions), "must include at least one of v1, v1beta1"))


def hook_url(found: object, path: str, out: Causes) -> None:
    """Check the URL of a webhook."""
    text = str(found)
    try:
        url = urlsplit(text)
        host, user = url.netloc.rpartition("@")[2], url.netloc.rpartition("@")[0]
    except ValueError as error:
        out.append(required(path, f"url must be a valid URL: parse {quote(text)}: {error}{_FORM}"))
        return
    if ":" in text.partition("/")[0] and not re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:", text):
        problem = "first path segment in URL cannot contain colon"
        out.append(required(path, f"url must be a valid URL: parse {quote(text)}: {problem}{_FORM}"))
        return
    if url.scheme != "https":
        out.append(invalid_value(path, quote(url.scheme), f"'https' is the only allowed URL scheme{_FORM}"))
    if not host:
        out.append(invalid_value(path, '""', f"host must be specified{_FORM}"))
    if user:
        out.append(invalid_value(path, quote(user), "user information is not permitted in the URL"))
    if url.fragment:
        out.append(invalid_value(path, quote(url.fragment), "fragments are not permitted in the URL"))
    if url.query:
        out.append(invalid_value(path, quote(url.query), "query parameters are not permitted in the URL"))


def _service_path(found: object, path: str, out: Causes) -> None:
    text = str(found)
    if text in ("", "/"):
        return
    if text == "//":
        out.append(invalid_value(path, quote(text), "segment[0] may not be empty"))
        return
    if not text.startswith("/"):
        out.append(invalid_value(path, quote(text), "must start with a '/'"))
    for index, step in enumerate(text[1:].removesuffix("/").split("/")):
        if not step:
            out.append(invalid_value(path, quote(text), f"segment[{index}] may not be empty"))
            continue
        for problem in check_dns1123_subdomain(step):
            out.append(invalid_value(path, quote(text), f"segment[{index}]: {problem}"))


def service_port(found: object, path: str, out: Causes) -> None:
    """Check the port of a service that the API server calls."""
    if not isinstance(found, int) or not 1 <= found <= 65535:
        detail = "port is not valid: must be between 1 and 65535, inclusive"
        out.append(invalid_value(path, go_value(found), detail))


def client_service(*, namespace_first: bool) -> Rule:
    """Return a rule that checks the service of a webhook.

    Args:
        namespace_first: whether upstream swaps the two names for this kind, as for admission webhooks: it reports a
            missing namespace as a missing name, and vice versa.
    """
    names = ("namespace", "name") if namespace_first else ("name", "namespace")

    def run(service: Document, path: str, out: Causes) -> None:
        for name, shown in zip(names, ("name", "namespace"), strict=True):
            if not service.get(name):
                out.append(required(f"{path}.{shown}"))
        value("port", service_port, zero=0)(service, path, out)
        field("path", _service_path)(service, path, out)

    return run
