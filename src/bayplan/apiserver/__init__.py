"""The embedded Kubernetes API server: a store of whole objects with resource versions, served over REST.

The packages, from the inside out: `schema` describes the types of the pinned release; `store` holds encoded objects
under one revision counter; `codec` decodes and encodes bodies as Go's structs would; `fields` tracks field ownership;
`patches` applies patches; `model` has resources, metadata, selectors and errors; `validation` has the rules about
fields; `kinds` the behavior of individual kinds; `admission` policies and webhooks; `tables` the output of `kubectl
get`; `api_documents` discovery and OpenAPI; `rest` the verbs; `http` the ASGI application; `bridge` the controllers and
the kubelet. None of them schedules pods.
"""
