from __future__ import annotations

from hypothesis import settings

# The first example of a property may compile kernels, which no deadline allows for.
settings.register_profile("axplore", deadline=None)
settings.load_profile("axplore")
