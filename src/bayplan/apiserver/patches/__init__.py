"""Patches: JSON patch, JSON merge patch and strategic merge patch.

Server-side apply is in `bayplan.apiserver.fields`.
"""
