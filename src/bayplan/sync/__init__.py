"""Follow another cluster: import, sync, recordings and their replay. A host: it reads a source and writes to a Kubernetes API."""
