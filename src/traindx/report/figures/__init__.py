"""Figures of a run in plotly's JSON form, one file a figure, for the page and for notebooks."""
