"""Answers to questions about the present cluster, each verified by scheduling in a fork."""
