"""The report as one self-contained page."""

from traindx.report.html.page import render

__all__ = ["render"]
