"""Tests of expressions over devices."""
