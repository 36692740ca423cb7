"""The embedded Kubernetes API: a resource-versioned store of whole documents, served over REST to real clients.

From the inside out: `store` keeps documents as bytes under one revision counter; `schema` knows the types of the pinned
release; `codec` turns bodies into documents and back as Go's structs would; `fields` tracks who owns which field;
`patches` changes documents; `kinds` has what single kinds do beyond the table of facts; `rest` is the verbs; `tables`
the printed columns; `http` the ASGI application. What it does not do: schedule, or run controllers.
"""
