"""Tests of policies and webhooks."""
