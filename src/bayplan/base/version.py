"""The version of this package, and the Kubernetes release whose decisions it reproduces."""

__version__ = "0.1.0"

KUBERNETES_VERSION = "v1.36.3"
"""The pinned reference release of mode ``current``."""

CLASSIC_KUBERNETES_VERSION = "v1.16.15"
"""The reference release of mode ``classic``."""
