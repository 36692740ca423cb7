"""Synchronization with another cluster: import, sync, recordings, replay. A host that writes to a Kubernetes API."""
