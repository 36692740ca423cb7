"""Tests that read a server over HTTP while it schedules: each answer must be consistent with itself."""
