"""Proofs by brute force: answers of Bayplan against everything that could be answered, on random clusters."""
