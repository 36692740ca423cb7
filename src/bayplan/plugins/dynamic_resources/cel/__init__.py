"""The Common Expression Language as Kubernetes has it, as far as selectors of devices use it.

Read, check, run: `parser` makes a tree, `checker` finds its types or says what is wrong, `evaluator` makes a function of it.
`device_environment` is the one door. Source: https://github.com/google/cel-spec and
https://kubernetes.io/docs/reference/using-api/cel/. Left out: durations, timestamps, messages, and the libraries of URLs, IP
addresses, formats and authorization; an expression that uses them is refused.
"""
