"""O: faults of the optimizer and its updates."""
