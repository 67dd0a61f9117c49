"""What an exploration claims, as a file, and the verifier that trusts nothing but the counts.

    certificate = Certificate.load(folder)
    certificate.save(folder)
    print(verify(Certificate.load(folder)))

`axplore.records` and `document` say what a certificate holds; `region`, `bellman`, `bounds`, `kinds` and `checker`
verify it, one file in `kinds` for each kind of claims.
`episode_certificate` has the certificate of one policy by its episodes. What verifies shares no code with the solvers
and statistics of what made the certificate.
"""

from axplore.certificate.checker import verify
from axplore.certificate.claim_checks import ClaimCheck, Verification
from axplore.certificate.document import Certificate
from axplore.certificate.episode_certificate import Decision, EpisodeCertificate, verify_episodes
from axplore.records.claims import AtLeast, AtMost, NearOptimal, Reachable, TooFar

__all__ = [
    "AtLeast",
    "AtMost",
    "Certificate",
    "ClaimCheck",
    "Decision",
    "EpisodeCertificate",
    "NearOptimal",
    "Reachable",
    "TooFar",
    "Verification",
    "verify",
    "verify_episodes",
]
