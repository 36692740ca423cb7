"""The spec of plugins that need a single value of a pod. This module is not a plugin."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

K = TypeVar("K")


class KeySpec(msgspec.Struct, Generic[K], frozen=True):
    """All that a plugin needs of the pod, which is also the spec's key."""

    key: K
