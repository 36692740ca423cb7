"""Optional plugins that no default profile contains; they also serve as examples of custom plugins."""

from __future__ import annotations

from typing import Any

from bayplan.contrib.gang import Gang
from bayplan.contrib.gpu_sharing import POLICIES
from bayplan.framework.plugin import Plugin

CONTRIB: tuple[type[Plugin[Any]], ...] = (Gang, *POLICIES)
"""The plugin classes. A configuration enables them by name, and so does the option ``--plugin``."""
