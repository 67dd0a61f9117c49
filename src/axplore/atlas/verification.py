"""Verifies the certificate of an atlas, and that the atlas says no more than its certificate.

The certificate is verified from its counts alone (`axplore.certificate`). Every part of the atlas has to follow from
it, except the record of the run, from which nothing is concluded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from axplore.arguments import file_path
from axplore.atlas.atlas import Atlas
from axplore.atlas.construction import atlas_from_certificate
from axplore.atlas.verdict import VerdictKind
from axplore.certificate import (
    Certificate,
    ClaimCheck,
    ClaimKind,
    EpisodeCertificate,
    Verification,
    verify_episodes,
)
from axplore.certificate import verify as verify_certificate
from axplore.errors import ExitCode, InvalidInputError

RECORD: Final = ("world", "explorer", "found_at", "steps", "rounds", "stop")
"""The record of the run in an atlas. It does not follow from the certificate, and no answer depends on it."""


def verify(subject: Atlas | EpisodeCertificate | str | Path) -> Verification:
    """Verifies, from the counts alone, everything that an atlas or its folder claims to be certified.

    It trusts neither the explorer nor its solvers. The result has an item for each claim of the certificate and one for
    the atlas, and ends with the verdict.

    A certificate by episodes (see `axplore.certify`), or the file of one, is verified from its outcomes alone.
    """
    if not isinstance(subject, Atlas | EpisodeCertificate):
        path = file_path("subject", subject)
        subject = EpisodeCertificate.load(path) if path.is_file() else Atlas.load(path)
    return verify_episodes(subject) if isinstance(subject, EpisodeCertificate) else verify_atlas(subject)


def verify_atlas(atlas: Atlas) -> Verification:
    """Checks from the counts alone everything that an atlas says to be certified."""
    if atlas.certificate is None and atlas.proven:
        raise InvalidInputError("a part of an atlas has no certificate; verify the atlas that it was taken from")
    if atlas.certificate is None:
        raise InvalidInputError(
            f"there is nothing to verify: the explorer {atlas.explorer} leaves no certificate; explore with 'certified'"
        )
    verification = verify_certificate(atlas.certificate)
    contradiction = next(contradictions(atlas, atlas.certificate), None)
    said = ClaimCheck(
        kind=ClaimKind.ATLAS,
        subject="what the atlas says of states, policies and bounds",
        position=None,
        holds=contradiction is None,
        why=contradiction or "no more than what is claimed above",
    )
    verdict = atlas.verdict
    code = ExitCode.UNFINISHED if verdict.kind is VerdictKind.UNFINISHED else verdict.exit_code
    return replace(verification, claims=(*verification.claims, said), conclusion=verdict.lines, code=code)


def contradictions(atlas: Atlas, certificate: Certificate) -> Iterator[str]:
    """Describes the parts of an atlas that do not follow from its certificate."""
    n_counted = certificate.n_seen
    follows = atlas_from_certificate(
        certificate, **{name: getattr(atlas, name) for name in RECORD}, uncounted=atlas.seen[n_counted:]
    )
    for field in fields(Atlas):
        if not _same(getattr(atlas, field.name), getattr(follows, field.name)):
            yield f"its {field.name.replace('_', ' ')} does not follow from the certificate"


def _same(one: Any, other: Any) -> bool:
    """Returns whether two parts of atlases are equal, arrays included."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and bool(one == other)
