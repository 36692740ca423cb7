"""Bayplan: kube-scheduler's decisions in Python, in real or virtual time, explained."""
