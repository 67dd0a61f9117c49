"""Verifies the certificate of an atlas, from its counts alone.

Everything that an atlas says is derived from its certificate, except the record of the run, from which nothing is
concluded.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from axplore.arguments import file_path
from axplore.atlas.atlas import Atlas
from axplore.atlas.verdict import VerdictKind
from axplore.certificate import (
    ClaimCheck,
    EpisodeCertificate,
    Verification,
    verify_episodes,
)
from axplore.certificate import verify as verify_certificate
from axplore.certificate.binding import draws_by_label
from axplore.errors import ExitCode, InvalidInputError
from axplore.explorers.registry import DEFAULT_EXPLORER


def verify(subject: Atlas | EpisodeCertificate | str | Path) -> Verification:
    """Verifies, from the counts alone, everything that an atlas or its folder claims to be certified.

    It trusts neither the explorer nor its solvers. The result has an item for each claim of the certificate,
    and ends with the verdict.

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
            f"there is nothing to verify: the explorer {atlas.explorer} leaves no certificate; explore "
            f"with {DEFAULT_EXPLORER!r}"
        )
    verification = verify_certificate(atlas.certificate)
    if atlas.run.draws != draws_by_label(atlas.certificate.counts, atlas.certificate.known):
        why = "a label stands beside other draws than the record of the run has of it"
        verification = replace(
            verification, claims=(*verification.claims, ClaimCheck("counts", "the labels", None, False, why))
        )
    verdict = atlas.verdict
    code = ExitCode.UNFINISHED if verdict.kind is VerdictKind.UNFINISHED else verdict.exit_code
    return replace(verification, conclusion=verdict.lines, code=code)
