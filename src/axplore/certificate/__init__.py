"""What an exploration claims, as a file, and the verifier that trusts nothing but the counts.

    certificate = Certificate.load(folder)
    certificate.save(folder)
    print(verify(Certificate.load(folder)))

`contents`, `doubts` and `document` say what a certificate holds, `region`, `bellman` and `checker` verify it.
`episode_certificate` has the certificate of one policy by its episodes. What verifies shares no code with the solvers
and statistics of what made the certificate.
"""

from axplore.certificate.checker import verify
from axplore.certificate.claim_checks import ClaimCheck, ClaimKind, Verification
from axplore.certificate.contents import AtLeast, AtMost, Counts, NearOptimal, Reachable, TooFar
from axplore.certificate.document import Certificate
from axplore.certificate.episode_certificate import Decision, EpisodeCertificate, verify_episodes

__all__ = [
    "AtLeast",
    "AtMost",
    "Certificate",
    "ClaimCheck",
    "ClaimKind",
    "Counts",
    "Decision",
    "EpisodeCertificate",
    "NearOptimal",
    "Reachable",
    "TooFar",
    "Verification",
    "verify",
    "verify_episodes",
]
