"""Tests of the plugin DynamicResources."""
