"""Dynamic admission: policies with CEL expressions, and webhooks, called between the built-in steps of a write.

A write calls `Admission` twice: `mutate` after defaults are set, `validate` once the object is complete and valid.
Built-in admission (quotas, limit ranges, priorities ...) is in `bayplan.apiserver.kinds`.
"""
