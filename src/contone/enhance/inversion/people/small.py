"""Linear algebra of small matrices in compiled loops: as plain loops, which are quicker here than calls of LAPACK."""

# mypy: disable-error-code="no-untyped-def"

import math

from contone.enhance.inversion.sweeps.elementary import compiled


@compiled
def factorise(A):
    """Put the Cholesky factor L, A = L L', into the lower triangle of A (q, q); False where A is not positive."""
    q = len(A)
    for j in range(q):
        pivot = A[j, j]
        for k in range(j):
            pivot -= A[j, k] * A[j, k]
        if not pivot > 0.0:
            return False
        root = math.sqrt(pivot)
        A[j, j] = root
        inverse = 1.0 / root
        for i in range(j + 1, q):
            s = A[i, j]
            for k in range(j):
                s -= A[i, k] * A[j, k]
            A[i, j] = s * inverse
    return True


@compiled
def solve_lower(L, x):
    """Replace x (q,) by L^-1 x."""
    for i in range(len(x)):
        s = x[i]
        for k in range(i):
            s -= L[i, k] * x[k]
        x[i] = s / L[i, i]


@compiled
def solve_upper(L, x):
    """Replace x (q,) by L'^-1 x."""
    q = len(x)
    for i in range(q - 1, -1, -1):
        s = x[i]
        for k in range(i + 1, q):
            s -= L[k, i] * x[k]
        x[i] = s / L[i, i]
