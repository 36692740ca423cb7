"""Documents that describe the API to clients: discovery and OpenAPI."""
