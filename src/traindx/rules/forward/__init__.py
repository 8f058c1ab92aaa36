"""F: faults of the forward signal."""
