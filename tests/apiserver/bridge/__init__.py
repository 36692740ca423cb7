"""Tests of `bayplan.apiserver.bridge`."""
