"""Bodies to documents and back, as Go's structs would read and write them: JSON, YAML, protobuf."""
