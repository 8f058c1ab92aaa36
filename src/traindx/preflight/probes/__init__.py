"""One file a probe."""
