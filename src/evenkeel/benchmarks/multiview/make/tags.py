"""Which documents to look at for an anchor by their tags; by their words: `evenkeel.lexical`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from evenkeel.text.bm25 import DIGITS, Alike, Candidate, Floats, alike, best, counts


def tag_candidates(
    tags: Sequence[Collection[str]], texts: Sequence[str], anchors: Sequence[int], k: int
) -> list[list[Candidate]]:
    """For each anchor the `k` documents with the highest Jaccard similarity of tags, best first.

        J(a, b) = |A ∩ B| / |A ∪ B|, and 0 where both have no tags

    Anchors, texts of the same wording and equal scores are treated as in `lexical_candidates`.
    """
    return [best(row, k) for row in tag_rows(tags, texts, anchors)]


def tag_rows(
    tags: Sequence[Collection[str]], texts: Sequence[str], anchors: Sequence[int]
) -> Iterator[Alike]:
    """For each anchor the Jaccard similarity of all documents that share a tag with it, itself left out."""
    members = counts([list(dict.fromkeys(own)) for own in tags]).matrix
    sizes = np.asarray(members.sum(axis=1)).ravel()
    rows = alike(members[list(anchors)], members, texts, anchors)
    return (_jaccard(row, sizes) for row in rows)


def _jaccard(shared: Alike, sizes: Floats) -> Alike:
    union = sizes[shared.anchor] + sizes[shared.documents] - shared.scores
    return shared._replace(scores=np.round(shared.scores / union, DIGITS))
