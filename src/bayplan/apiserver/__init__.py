"""The embedded Kubernetes API: a resource-versioned store of whole documents, served over REST to real clients.

From the inside out: `schema` knows the types of the pinned release; `store` keeps documents as bytes under one revision
counter; `codec` turns bodies into documents and back as Go's structs would; `fields` tracks who owns which field; `patches`
changes documents; `model` has resources, metadata, selectors and errors; `validation` the rules of fields; `kinds` the behavior
of single kinds beyond the table of facts; `admission` policies and webhooks; `tables` the printed columns; `api_documents`
discovery and OpenAPI; `rest` the verbs; `http` the ASGI application; `bridge` the controllers that work over the API.
It does not schedule.
"""
