"""Decoding of request bodies and encoding of responses, as Go's structs would do it: JSON, YAML, protobuf."""
