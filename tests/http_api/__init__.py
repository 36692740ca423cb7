"""Tests of Bayplan's HTTP API, called in process."""
