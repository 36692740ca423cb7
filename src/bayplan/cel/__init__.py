"""The Common Expression Language as Kubernetes has it, for device selectors, validation rules and admission policies.

`parser` builds a tree, `checker` determines its types or reports errors, `evaluator` compiles it to a function. The package knows
no variable by name: each user declares its own (`plugins/dynamic_resources/device_environment.py` declares `device`).

Sources: https://github.com/google/cel-spec and https://kubernetes.io/docs/reference/using-api/cel/. Not supported: durations,
timestamps, messages, and the libraries of URLs, IP addresses, formats and authorization; an expression that uses them is rejected.
"""
