"""Scenarios: files with steps that change a cluster in virtual time, and assertions about the result."""
