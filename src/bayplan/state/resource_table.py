"""The numbers of the first resources, in the matrices and in `NodeTable.resources`; the others follow as they appear."""

CPU = 0
MEMORY = 1
EPHEMERAL_STORAGE = 2

FIRST_RESOURCES = ("cpu", "memory", "ephemeral-storage")
PODS = "pods"
"""Counted separately from resources, as upstream does (AllowedPodNumber)."""
