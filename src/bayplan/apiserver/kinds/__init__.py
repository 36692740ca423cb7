"""What single kinds do beyond the table of facts: defaults, admission, preparation, validation, subresources."""
