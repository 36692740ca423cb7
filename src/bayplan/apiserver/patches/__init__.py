"""Patches: JSON patch, JSON merge patch, strategic merge patch. Server-side apply is in `bayplan.apiserver.fields`."""
