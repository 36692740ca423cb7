"""Compiles the modules that have a ``.py`` and a ``.pxd``. Run by `make build` and by the build hook of the package."""
