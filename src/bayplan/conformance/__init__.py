"""Recorded answers of a real scheduler against ours."""
