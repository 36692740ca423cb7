"""Read input: manifests, lists and traces, from bytes to objects.

`inputs` is the entry point for files: `load_inputs` returns typed objects (`manifest.Manifest`, `trace.Trace`), and
`read_objects` returns documents. The steps are `files` (paths, gzip), `documents` (bytes to documents with positions),
which uses `yaml_text` and `json_text` (text to plain data), and `manifests` and `traces` (documents to typed objects).
`yaml_fast` reads common YAML, `yaml_nodes` the rest, and `yaml_tree` evaluates it with go-yaml's rules. `json_tree` keeps
the order and digits that plain data lack.
`object_decoder` decodes objects from an API. `schema` describes the types of the API.
"""
