"""The responses of Bayplan's own HTTP API as structs. The OpenAPI document and the page's types are generated from them."""
