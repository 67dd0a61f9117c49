"""The learned model of an atlas in the formats of model checkers, graphs and tables."""

from __future__ import annotations

from axplore.export.formats import FORMATS, export

__all__ = ["FORMATS", "export"]
