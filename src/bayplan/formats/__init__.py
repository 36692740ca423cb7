"""Bytes to objects: manifests, lists, traces."""
