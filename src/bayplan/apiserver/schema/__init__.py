"""Facts about the API of the pinned release: Go types, resources, table columns."""
