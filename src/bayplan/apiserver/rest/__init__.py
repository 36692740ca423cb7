"""The REST API of the in-process API server: one module per verb or special resource, without any network code."""
