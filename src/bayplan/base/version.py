"""The version of this package, and the Kubernetes releases whose decisions it reproduces."""

__version__ = "0.1.0"

KUBERNETES_VERSION = "v1.36.3"
"""The release that mode `current` reproduces."""

CLASSIC_KUBERNETES_VERSION = "v1.16.15"
"""The release that mode `classic` reproduces."""
