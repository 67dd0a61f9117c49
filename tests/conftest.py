from __future__ import annotations

import os

from hypothesis import settings

# The first example of a property may compile kernels, which no deadline allows for. A submission's run repeats the same
# examples, so that its verdict is about the change; every run by hand tries new ones.
settings.register_profile("axplore", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("axplore")
