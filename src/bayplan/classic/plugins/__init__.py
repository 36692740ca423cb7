"""The rules of the classic scheduler (Kubernetes 1.16): predicates and priorities under their old names, one rule per file."""
