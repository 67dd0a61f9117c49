"""Files of every release are read and verified by this version: what docs/formats.md promises."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import axplore
from axplore import Atlas
from axplore.atlas.map_file import read_map
from axplore.certificate import Decision, EpisodeCertificate
from axplore.errors import ExitCode

ROOT = Path(__file__).parent.parent
RELEASES = sorted(path for path in (ROOT / "tests" / "kept").iterdir() if path.is_dir())


@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.name)
def test_files_of_a_release_are_read_and_verified(release: Path) -> None:
    for name in ("optimal", "assuming"):
        verification = axplore.verify(release / name)
        assert verification.exit_code is ExitCode.DONE, str(verification)
        assert Atlas.load(release / name).complete
    certificate = EpisodeCertificate.load(release / "episodes.json")
    assert certificate.decision is Decision.PROVEN
    assert axplore.verify(release / "episodes.json").exit_code is ExitCode.DONE
    assert read_map(release / "map.json").atlas().complete


def test_the_formats_of_this_version_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    sys.modules.pop("keep_files", None)
    from keep_files import formats

    kept = ROOT / "tests" / "kept" / axplore.__version__ / "formats.json"
    assert json.loads(kept.read_text(encoding="utf-8")) == formats(), "a format has changed: run tools/keep_files.py"
