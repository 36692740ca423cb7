"""The web page: static files that are a client of our HTTP API, and the ASGI application that serves them."""
