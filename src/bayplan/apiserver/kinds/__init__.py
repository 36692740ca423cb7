"""Behavior of individual kinds beyond the table of facts: defaults, admission, preparation, validation, subresources."""
