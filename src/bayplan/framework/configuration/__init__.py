"""The configuration of the scheduler: reading, defaulting, validation, and the resulting profiles."""
