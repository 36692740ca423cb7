"""Typed Kubernetes objects: the part of each that scheduling reads; quantities, selectors, requests, defaults."""
