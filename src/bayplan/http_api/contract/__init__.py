"""The answers of Bayplan's own HTTP API: a struct each. The OpenAPI document and the page's types are generated from them."""
