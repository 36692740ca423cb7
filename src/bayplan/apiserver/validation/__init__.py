"""Validation of objects: an engine that runs rules, and one table of rules for each kind."""
