"""What an exploration claims, as a file, and the verifier that trusts nothing but the counts.

    certificate = Certificate.load(folder)
    certificate.save(folder)
    print(verify(Certificate.load(folder)))

`claims` and `document` say what a certificate holds, `sealed` writes and reads it, `region` and `checker` verify it.
The last two share no code with the solvers and statistics of the explorer that made it.
"""

from axplore.certificate.checker import verify
from axplore.certificate.contents import Counts, NearOptimal, Reachable, TooFar
from axplore.certificate.document import Certificate
from axplore.certificate.verdict import ClaimKind, ClaimVerdict, Verdict

__all__ = [
    "Certificate",
    "ClaimKind",
    "ClaimVerdict",
    "Counts",
    "NearOptimal",
    "Reachable",
    "TooFar",
    "Verdict",
    "verify",
]
