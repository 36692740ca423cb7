"""API schema of the pinned release: facts from Go, resources, discovery, OpenAPI documents."""
