"""The scheduler's configuration: reading, defaulting, validation, and the profiles built from it."""
