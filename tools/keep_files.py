"""Keeps small files of every format of this version in tests/kept, for later versions to read.

    python tools/keep_files.py

Run it once for each release. Until 1.0.0 is out, its files are replaced when a format changes; after that, files of a
release stay as they are.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import axplore
from axplore.atlas.map_file import map_of, write_map
from axplore.domains import confusing_chain
from axplore.explorers.certified import Certified
from axplore.target import Objective, Target

KEPT = Path(__file__).parent.parent / "tests" / "kept"


def formats() -> dict[str, int]:
    """The version of each format that is promised to be read later."""
    from axplore.atlas import files, map_file
    from axplore.certificate import document, episode_certificate

    return {module.FORMAT: module.VERSION for module in (document, episode_certificate, files, map_file)}


def keep(folder: Path) -> None:
    """Writes the files."""
    shutil.rmtree(folder, ignore_errors=True)
    chain = confusing_chain()
    axplore.explore(chain, radius=3, epsilon=1).save(folder / "optimal")
    given = axplore.explore(chain, radius=3, epsilon=1, assume="min-probability=0.05", objective="within-radius")
    given.save(folder / "assuming")
    axplore.certify(given, chain, given.states[1], within=4).save(folder / "episodes.json")
    explorer = Certified(
        target=Target(radius=3, epsilon=1, delta=0.1), objective=Objective.WITHIN_RADIUS, by_episodes=False
    )
    write_map(map_of(axplore.explore(chain, explorer=explorer)), folder / "map.json")
    (folder / "formats.json").write_text(json.dumps(formats(), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    keep(KEPT / axplore.__version__)
