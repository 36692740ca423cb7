"""Validation as data: an engine of rules, and one table of them for each group of kinds."""
