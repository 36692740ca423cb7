"""The model of API requests: resources, metadata, field values, selectors, expressions, and errors."""
