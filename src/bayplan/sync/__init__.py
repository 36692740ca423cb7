"""Synchronization with another cluster: import, sync, recordings and replay, written through a Kubernetes API."""
