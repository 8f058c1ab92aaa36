"""N: faults of normalization layers."""
