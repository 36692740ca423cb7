"""Bytes to objects: manifests, lists, traces.

`inputs` is the entry point for files: `load_inputs` returns typed objects (`manifest.Manifest`, `trace.Trace`), `read_objects`
returns documents. Its steps: `files` (paths, gzip), `documents` (bytes to documents with positions) on top of `yaml_text` and
`json_text` (text to plain data), `manifests` and `traces` (to typed objects). `object_decoder` decodes objects from an API.
`schema` describes the types of the API.
"""
