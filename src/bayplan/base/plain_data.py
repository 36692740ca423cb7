"""Data as JSON and YAML have it, before it is read into types or after it was written from them."""

Plain = dict[str, object]
"""An object of JSON."""

Document = dict[str, object]
"""A Kubernetes object, or a part of one, as its document has it."""
