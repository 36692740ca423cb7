"""Tests of the plugin DynamicResources and its parts."""
