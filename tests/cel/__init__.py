"""Tests of CEL expressions over devices."""
