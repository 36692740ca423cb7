"""The REST API: from a request to a response, verb by verb."""
