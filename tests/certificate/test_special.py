"""The verifier's special functions against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln, psi

from axplore.certificate.special import digamma, log_gamma

arguments = st.floats(1e-6, 1e12)


@given(arguments)
def test_the_logarithm_of_gamma_is_that_of_scipy(x: float) -> None:
    assert log_gamma(np.array([x]))[0] == pytest.approx(gammaln(x), rel=1e-14, abs=2e-13)


@given(arguments)
def test_digamma_is_that_of_scipy(x: float) -> None:
    assert digamma(np.array([x]))[0] == pytest.approx(psi(x), rel=1e-14, abs=1e-13)
