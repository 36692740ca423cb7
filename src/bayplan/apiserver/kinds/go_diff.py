"""What upstream appends to a refused change: a difference of Go's structs, here told by the fields that changed.

Upstream prints a unified difference of the internal structs as JSON. Their layout is not part of the API, and Bayplan
does not have them: it prints the changed fields by their names in the API, in the same form.
"""

from __future__ import annotations

import json

from bayplan.base.plain_data import Document

CHANGED_POD = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n"
)


def pod_difference(old: Document, new: Document) -> str:
    """Return the fields in which two specs differ, as removed and added lines."""
    lines: list[str] = []
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if before != after:
            lines += [f"- {_line(name, before)}", f"+ {_line(name, after)}"]
    return "\n".join([*lines, ""])


def _line(name: str, value: object) -> str:
    return f'"{name[:1].upper()}{name[1:]}": {json.dumps(value)},'
