"""G: faults of the gradients."""
