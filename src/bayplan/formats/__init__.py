"""Bytes to objects: manifests, lists, traces.

`inputs` is the way in for files: `load_inputs` to typed objects (-> `manifest.Manifest`, `trace.Trace`), `read_objects` to
documents. Its steps: `files` (paths, gzip), `documents` (bytes to documents with places), over `yaml_text` and `json_text` (text
to plain data); `manifests` and `traces` (to typed objects). `object_decoder` decodes what an API sent. `schema` has facts about
the types of the API.
"""
