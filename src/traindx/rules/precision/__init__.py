"""Rules on numbers with few digits."""
