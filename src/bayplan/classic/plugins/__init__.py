"""The rules of the classic scheduler (Kubernetes 1.16): predicates and priorities, one rule per file."""
