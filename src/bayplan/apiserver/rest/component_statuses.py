"""The read-only resource ``componentstatuses``: the health of the scheduler, the controllers and the store.

Source: pkg/registry/core/componentstatus v1.36.3, which asks the health endpoint of each component for every request.
"""

from __future__ import annotations

import msgspec

from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.store.item import Item
from bayplan.base.plain_data import Document

TABLE = "componentstatuses"
STORE = "etcd-0"
_PORTS = {"scheduler": 10259, "controller-manager": 10257}
"""The ports on which the components of a real cluster serve their health, by name."""


def component_items(backend: Backend) -> list[Item]:
    """Return the components as items without revision.

    The scheduler and the controllers are healthy if `Backend.runs` contains them. The store is always healthy.
    """
    return [_item(name, backend) for name in (*_PORTS, STORE)]


def _item(name: str, backend: Backend) -> Item:
    healthy = name == STORE or name in backend.runs
    message = "ok" if healthy else _refused(_PORTS[name])
    condition = {"type": "Healthy", "status": "True" if healthy else "False", "message": message}
    document: Document = {"metadata": {"name": name}, "conditions": [condition]}
    return Item(msgspec.json.encode(document), 0, "", name, "", {}, {})


def _refused(port: int) -> str:
    return f'Get "https://127.0.0.1:{port}/healthz": dial tcp 127.0.0.1:{port}: connect: connection refused'
