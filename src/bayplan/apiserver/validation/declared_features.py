"""Validation rules of `status.declaredFeatures` of nodes.

Source: ValidateNode and the package nodedeclaredfeatures of component-helpers, v1.36.3; recorded messages.
"""

from __future__ import annotations

import re

from bayplan.apiserver.model.errors import duplicate, invalid_value
from bayplan.apiserver.validation.engine import Causes
from bayplan.base.plain_data import Document, part, texts
from bayplan.objects.selectors import quote

_NAME = re.compile(r"[A-Z][A-Za-z0-9]*(/[A-Za-z0-9]+)*")
_MAX_LENGTH = 253
_WRONG_NAME = (
    "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or "
    "MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
)


def declared_features(node: Document, _path: str, out: Causes) -> None:
    """Check the names of a node's declared features, which are sorted and distinct."""
    before = ""
    for index, name in enumerate(texts(part(node, "status"), "declaredFeatures")):
        path = f"status.declaredFeatures[{index}]"
        if index and name == before:
            out.append(duplicate(path, quote(name)))
        elif index and name < before:
            out.append(invalid_value(path, quote(name), "list must be sorted alphabetically"))
        if len(name) > _MAX_LENGTH:
            why = f"must be no more than {_MAX_LENGTH} characters"
        else:
            why = "" if _NAME.fullmatch(name) else _WRONG_NAME
        if why:
            out.append(invalid_value(path, quote(name), f"invalid feature name {quote(name)}: {why}"))
        before = name
