"""The behavior of individual kinds: defaults, admission, preparation, validation, subresources."""
