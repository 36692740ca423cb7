"""Warning headers of responses: without duplicates and control characters, within a total size limit.

Source: https://kubernetes.io/blog/2020/09/03/warnings/
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bayplan.apiserver.model.requests import DeleteOptions, RequestInfo
    from bayplan.apiserver.rest.backend import Backend

_DEPRECATED = {
    ("", "v1", "endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ("", "v1", "componentstatuses"): "v1 ComponentStatus is deprecated in v1.19+",
}
_MAX_CHARACTERS = 4 * 1024
_MAX_EACH = 256


def deprecation_warning(info: RequestInfo) -> str:
    """Return the warning for clients of a deprecated resource, or an empty string."""
    resource = info.resource
    if resource.custom is not None:
        return resource.deprecation
    return _DEPRECATED.get((resource.group, resource.version, resource.name), "")


def delete_warnings(backend: Backend, info: RequestInfo, options: DeleteOptions) -> list[str]:
    """Return the kind's warning about deletions without a propagation policy, or an empty list if the policy is set."""
    if options.propagation or options.orphan is not None:
        return []
    return [backend.strategy(info.resource).delete_warning]


def warning_headers(texts: Iterable[str]) -> list[tuple[str, str]]:
    """Return the headers of warnings.

    If the total is too long, truncate each warning, and omit warnings beyond the limit.
    """
    ordered = [text for text in dict.fromkeys(texts) if text]
    whole = [text for text in ordered if not _has_control_characters(text)]
    if sum(len(text) for text in whole) > _MAX_CHARACTERS:
        whole = [text for each in ordered if not _has_control_characters(text := each[:_MAX_EACH])]
        written = 0
        for number, text in enumerate(whole):
            if written >= _MAX_CHARACTERS:
                whole = whole[:number]
                break
            written += len(text)
    return [("warning", f"299 - {_quoted(text)}") for text in whole]


def _has_control_characters(text: str) -> bool:
    return any(unicodedata.category(each) == "Cc" for each in text)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
