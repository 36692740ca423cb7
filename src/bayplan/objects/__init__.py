"""Typed Kubernetes objects, with the fields that scheduling reads; quantities, selectors, requests, defaults."""
