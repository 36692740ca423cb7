"""Dynamic admission: policies in CEL and webhooks, between the steps that a kind itself makes of a write.

A write asks `Admission` twice: `mutate` once defaults are there, `validate` once the object is complete and valid. Built-in
admission (quotas, limit ranges, priorities ...) is in `bayplan.apiserver.kinds`.
"""
