"""Kubernetes quantities: exact numbers with suffixes, as k8s.io/apimachinery reads, rounds and prints them."""

QUANTITY_PATTERN = (
    r"^(?:[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,19})?"
    r"|(?=.)[+-]?\.?(?:[KMGTPE]i|[numkMGTPE]|[eE](?:\+?[0-9]{1,19}|-0*[0-9]))?)\Z"
)
"""What upstream's parser lets through: digits may be missing altogether (`Ki`, `.` and `-` are zero)."""
