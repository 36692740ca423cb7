"""The web page: static files that are a client of the HTTP API, and the ASGI application that serves them."""
