"""Rules of the family S: what is wrong with the model before it takes a step."""
