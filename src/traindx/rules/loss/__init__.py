"""L: faults of the loss and of what goes into it."""
