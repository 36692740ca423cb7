"""Answers to questions about a cluster as it is now: each is tried by scheduling in a fork before it is given."""
