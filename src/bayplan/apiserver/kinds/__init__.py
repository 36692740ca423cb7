"""The behavior of kinds that the recorded facts do not describe: defaults, admission, preparation, validation,
subresources.
"""
