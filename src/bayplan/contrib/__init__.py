"""Plugins that come along and that no profile has by default: worked examples of custom ones, and of use by themselves."""

from __future__ import annotations

from typing import Any

from bayplan.contrib.gang import Gang
from bayplan.framework.plugin import Plugin

CONTRIB: tuple[type[Plugin[Any]], ...] = (Gang,)
"""The plugin classes; a configuration enables them by name, or the option ``--plugin``."""
