"""Vectors for normalization that nobody here wrote, and what our reference answers to them."""
