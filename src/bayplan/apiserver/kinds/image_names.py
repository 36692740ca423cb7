"""Image names: which tag one has, as the reference grammar of container registries reads it."""

from __future__ import annotations

import re

_MAX_NAME_LENGTH = 255
_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_DOMAIN_PART = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_REFERENCE = re.compile(
    rf"(?P<name>(?:{_DOMAIN}/)?{_COMPONENT}(?:/{_COMPONENT})*)(?::(?P<tag>\w[\w.-]{{0,127}}))?"
    r"(?:@(?P<digest>[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?",
    re.ASCII,
)
_IDENTIFIER = re.compile(r"[a-f0-9]{64}")
_DEFAULT_DOMAIN = "docker.io/"
_DEFAULT_REPOSITORY = "library/"


def image_tag(image: str) -> str:
    """Return the tag of an image: ``latest`` if it has neither tag nor digest, empty if it is no image name at all."""
    if _IDENTIFIER.fullmatch(image):
        return ""
    domain, slash, rest = image.partition("/")
    if not slash or not (set(domain) & set(".:") or domain == "localhost" or domain.lower() != domain):
        rest = image if slash else _DEFAULT_REPOSITORY + image
        domain = _DEFAULT_DOMAIN.rstrip("/")
    path = rest.partition("@")[0]
    if ":" in path:
        path = path[: path.index(":")]
    if path.lower() != path:
        return ""
    found = _REFERENCE.fullmatch(f"{domain}/{rest}")
    if found is None or len(found["name"]) - len(domain) - 1 > _MAX_NAME_LENGTH:
        return ""
    return found["tag"] or ("" if found["digest"] else "latest")
