"""Proofs by brute force: Bayplan's answers compared with all possible answers, on random clusters."""
