"""Tests of admission policies and webhooks."""
