"""The Common Expression Language with Kubernetes' libraries, for device selectors, schema rules and admission.

`parser` builds a syntax tree, `checker` determines its types or reports errors, and `evaluator` compiles it to a
function. The package defines no variables: each user declares its own
(`plugins/dynamic_resources/device_environment.py` declares `device`).

Sources: https://github.com/google/cel-spec and https://kubernetes.io/docs/reference/using-api/cel/.
"""
