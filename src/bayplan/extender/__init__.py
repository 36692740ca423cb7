"""HTTP extenders in both roles: a client for the extenders of a configuration, and a server that offers plugins."""
