"""Rules on evaluation and the mode a model is in."""
