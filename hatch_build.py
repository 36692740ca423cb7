"""Adds the compiled modules to a wheel, if a compiler works here; without one the wheel is pure Python, and warns."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent))

VARIABLE = "BAYPLAN_COMPILE"
"""``0``: never compile. ``1``: fail if nothing can compile. Otherwise: compile if possible."""


class CompiledModulesHook(BuildHookInterface[Any]):
    """Compiles in the source tree for an editable install, and into the wheel otherwise."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile. Hatchling calls this before it collects files."""
        wanted = os.environ.get(VARIABLE, "")
        if wanted == "0":
            return
        from building.compilers import NoCompilerError, find_compiler
        from building.extensions import build, installed_files
        from building.modules import ROOT, TAG, checkout_sources

        sources = checkout_sources()
        try:
            compiler = find_compiler(install_zig=False)
        except NoCompilerError as problem:
            if wanted == "1":
                raise
            self.app.display_warning(f"Bayplan is installed uncompiled, and runs several times slower: {problem}")
            return
        build(sources, compiler, ROOT / "build" / "compiled" / TAG)
        if version != "editable":
            build_data["force_include"].update(installed_files(sources, compiler))
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
