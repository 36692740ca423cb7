"""Optional plugins that no default profile contains: useful by themselves, and worked examples of custom plugins."""

from __future__ import annotations

from typing import Any

from bayplan.contrib.gang import Gang
from bayplan.contrib.gpu_sharing import POLICIES
from bayplan.framework.plugin import Plugin

CONTRIB: tuple[type[Plugin[Any]], ...] = (Gang, *POLICIES)
"""The plugin classes; a configuration enables them by name, or the option ``--plugin``."""
