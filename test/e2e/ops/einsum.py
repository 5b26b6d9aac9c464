# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Einstein summation."""

import numpy as np

from .draft import generates

#: Ellipses, diagonals, several operands, sums of one operand, and repeated extents, which come up seldom by chance.
EQUATIONS = [
    "ij,jk->ik", "ij,jk", "bij,bjk->bik", "bhid,bhjd->bhij", "bihd,bjhd->bhij", "bixy,ioxy->boxy", "bxyi,xyio->bxyo",
    "...ij,...jk->...ik", "...i,...i", "i...->...i", "ii", "ii->i", "bii->bi", "iji->j", "iij,jk->k", "ij->ji", "ij->",
    "i,j->ij", "i,j,k->ijk", "ij,jk,kl->il", "ij,jk,kl,lm->im", "ij,ij,ij->ij", "ai,bi,ci->abc", "bi,bi->b",
    "abc,cd,def->abef", "a,ab,abc->", "B i j , B j k -> B i k", "ij,kl->", "bn,anm,bm->ba", "...a,...b->...", ",->",
    "ab,b...->a...", "cbA,cA->Ab",
]  # fmt: skip


@generates("Einsum", weight=8)
def einsum(d, op):
    d.since(12)
    dtype = d.pick(np.float32, np.float32, np.float32, np.float64, np.int32, np.int64)
    d.exact = dtype in (np.int32, np.int64)
    equation = d.pick(*EQUATIONS) if d.chance(0.7) else _equation(d)
    terms = equation.replace(" ", "").split("->")[0].split(",")
    ellipsis = [d.integer(1, 3) for _ in range(d.integer(0, 2))]
    extents = {letter: d.integer(1, 6) for letter in sorted(set(equation)) if letter.isalpha()}
    if extents and d.chance(0.3):
        extents[d.pick(*extents)] = d.integer(7, 20)
    operands = []
    for number, term in enumerate(terms):
        head, dots, tail = term.partition("...")
        shape = [extents[c] for c in head] + (ellipsis if dots else []) + [extents[c] for c in tail]
        values = d.values(shape, dtype, -2, 2)
        operands.append(d.input(values) if number == 0 else d.either(values, 0.3))
    d.node(op, *operands, equation=equation)


def _equation(d):
    """Some letters in each term, and some of them in the result."""
    letters = "abcdefg"[: d.integer(1, 5)]
    terms = ["".join(d.rng.permutation(list(letters))[: d.integer(0, 4)]) for _ in range(d.integer(1, 3))]
    if terms[0] and d.chance(0.2):
        terms[0] += d.pick(*terms[0])
    used = sorted(set("".join(terms)))
    result = [str(c) for c in d.rng.permutation(used)[: d.integer(0, 4)]] if used else []
    equation = ",".join(terms) + d.pick("->" + "".join(result), "->" + "".join(result), "")
    return equation or "->"
