"""Two layers side by side: every answer on which they differ, and what that does to a model."""
