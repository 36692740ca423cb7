"""The REST API: the implementation of each verb."""
