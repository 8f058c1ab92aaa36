"""Whether somebody else's normalization layers compute what they should, and how they differ."""
