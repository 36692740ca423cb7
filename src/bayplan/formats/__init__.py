"""Bytes to objects: manifests, lists, traces.

`inputs.load_inputs` reads whatever a user names; `manifests.load` manifests alone (-> `manifest.Manifest`),
`openb.load` the OpenB trace (-> `trace.Trace`). Below them: `files` (paths, gzip), `documents` (bytes to documents with
places), `yaml_text` and `json_text` (text to plain data), `schema` (facts about the types of the API).
"""
