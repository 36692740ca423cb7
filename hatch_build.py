"""Hooks of the package's build: compiled modules, and the addresses of the project.

If a compiler works, a wheel contains the compiled modules; without one it is pure Python, and the build warns.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent))

VARIABLE = "BAYPLAN_COMPILE"
"""``0``: never compile. ``1``: fail if nothing can compile. Otherwise: compile if possible."""

ADDRESS_VARIABLE = "BAYPLAN_URL"
"""Address of the repository, for `project.urls`; the release workflow sets it, as a fork has a different one."""


class ProjectUrlsHook(MetadataHookInterface):
    """Sets `project.urls`."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the addresses, or none without `BAYPLAN_URL`. Hatchling calls this when it reads the metadata."""
        address = os.environ.get(ADDRESS_VARIABLE, "").rstrip("/")
        if address:
            metadata["urls"] = {
                "Source": address,
                "Issues": f"{address}/issues",
                "Changelog": f"{address}/blob/main/CHANGELOG.md",
                "Security": f"{address}/security/policy",
            }


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
