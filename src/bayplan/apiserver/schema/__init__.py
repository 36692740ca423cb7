"""What the object server knows of the API of the pinned release: Go's facts, resources, discovery, OpenAPI documents."""
