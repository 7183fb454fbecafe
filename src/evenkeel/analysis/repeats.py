"""Answers to one prompt, asked several times: how often all of them are right."""

from __future__ import annotations

from math import comb


def pass_hat_k(right: int, answers: int, k: int) -> float:
    """The chance that k answers, drawn from those to one prompt without putting any back, are all right:

        pass^k = C(c, k) / C(n, k)

    with c right ones of n answers. Averaged over prompts it estimates without bias how often k answers in a
    row are right (Yao, Shinn, Razavi and Narasimhan, τ-bench, 2024).
    """
    if not 1 <= k <= answers or not 0 <= right <= answers:
        raise ValueError(f"pass^{k} of {right} right answers among {answers}")
    return comb(right, k) / comb(answers, k)
