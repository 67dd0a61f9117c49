"""The map of an atlas: a grid if the labels of its states form one, otherwise a graph in layers from the initial state.

The page, notebooks, pages of differences and comparisons, and `Atlas.plot` show the same drawing in the same colours.
"""

from axplore.atlas.drawing.layout import Layout, layout_of
from axplore.atlas.drawing.plotting import plot
from axplore.atlas.drawing.svg import as_svg

__all__ = ["Layout", "as_svg", "layout_of", "plot"]
