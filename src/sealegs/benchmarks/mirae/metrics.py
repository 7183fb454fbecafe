"""MIRAE's metrics: the published ones, and what a judge, known answers and chance add."""

from __future__ import annotations

from sealegs.page.metrics import Metric

PUBLISHED = (
    Metric(
        "mean_similarity",
        "Similarity of the answers' texts (SBERT cosine)",
        "cosine",
        "higher",
        meaning="The mean cosine of the embeddings of all pairs of answers to one prompt; 1 where all are "
        "the same text.",
        caution="It is of texts, not of what they claim: yes and no in whole sentences have cosines "
        "above 0.9. It does not begin at 0: answers to different questions have a cosine too.",
        main=True,
    ),
    Metric(
        "std_similarity",
        "spread of the cosines",
        "cosine",
        "lower",
        meaning="The population standard deviation of the cosines of the pairs of answers to one prompt.",
        caution="It grows with the number of answers.",
        depends_on="answers",
    ),
    Metric(
        "max_similarity",
        "cosine of the two most similar answers",
        "cosine",
        "higher",
        meaning="The highest cosine of two answers to one prompt.",
        caution="It grows with the number of answers, and two equal texts give 1.",
        depends_on="answers",
    ),
    Metric(
        "min_similarity",
        "cosine of the two least similar answers",
        "cosine",
        "higher",
        meaning="The lowest cosine of two answers to one prompt.",
        caution="It falls with the number of answers, and one refusal among them decides it.",
        depends_on="answers",
    ),
)
"""The figures of the published script."""

JUDGED = (
    Metric(
        "same_meaning",
        "Pairs of answers with the same meaning",
        "share",
        "higher",
        meaning="The share of pairs of answers to one prompt of which, says the judge, each entails the "
        "other (groups as in Kuhn, Gal & Farquhar 2023); the mean over prompts.",
        caution="It is what the judge says. Long answers seldom entail each other in every detail.",
        main=True,
        within_sample=True,
    ),
    Metric(
        "judged_meanings",
        "distinct meanings, says the judge",
        "count",
        "lower",
        meaning="How many groups of answers that entail each other the answers to one prompt fall into.",
        caution="It grows with the number of answers.",
        main=True,
        depends_on="answers",
    ),
    Metric(
        "judged_entropy",
        "semantic entropy, by the judge's meanings",
        "nats",
        "lower",
        meaning="−Σ pₖ ln pₖ over the shares of the answers in each of the judge's groups (Kuhn, Gal & "
        "Farquhar 2023, the discrete form).",
        caution="Shares of a few answers underestimate the entropy.",
        main=True,
        depends_on="answers",
    ),
)
"""What a judge adds."""

EXPECTED = (
    Metric(
        "right_every_time",
        "right every time",
        "share",
        "higher",
        meaning="Of the prompts whose right answer is known, the share to which every answer gives all parts "
        "of it.",
        caution="It falls with the number of answers. Answers are sought by their words, in usual spellings. "
        "Where all prompts agree, the interval over all levels is wider than that of one level: it counts "
        "questions, not their prompts, by Clopper and Pearson's limit, and that of one level is Wilson's.",
        main=True,
        depends_on="answers",
    ),
    Metric(
        "right_sometimes",
        "right sometimes",
        "share",
        None,
        meaning="The share of those prompts to which some answers are right and others are not.",
        caution="It grows with the number of answers.",
        main=True,
        depends_on="answers",
    ),
    Metric(
        "right_never",
        "right never",
        "share",
        "lower",
        meaning="The share of those prompts to which no answer is right.",
        caution="It falls with the number of answers.",
        main=True,
        depends_on="answers",
    ),
    Metric(
        "right_rate",
        "right answers",
        "share",
        "higher",
        meaning="The share of the answers to one of those prompts that are right; the mean over prompts.",
        caution="A request that failed is no answer; a refusal is one that is not right.",
        within_sample=True,
    ),
    Metric(
        "pass_hat_k",
        "right k times in a row (pass^k)",
        "share",
        "higher",
        meaning="C(c, k)/C(n, k) with c right ones of n answers to a prompt, the mean over prompts: the "
        "chance that k answers drawn from them are all right (Yao et al., τ-bench, 2024).",
        caution="A prompt that lacks any answer is left out, for each k.",
    ),
)
"""What questions with a known answer add."""

ADDED = (
    Metric(
        "corrected_similarity",
        "similarity corrected for chance",
        "cosine",
        "higher",
        meaning="1 − (1 − s)/(1 − F) with the mean similarity s and the cosine F of answers to different "
        "questions: 0 where answers to one prompt are as alike as those, 1 where all are the same. The value "
        "of a prompt is its contribution to that mean: with its share of a jackknife of F, not s corrected "
        "by F.",
        caution="It depends on the other questions of the run: runs over other questions are not compared.",
        main=True,
        depends_on="samples",
    ),
    Metric(
        "chance_floor",
        "cosine of answers to different questions",
        "cosine",
        None,
        meaning="The mean cosine of answers to different questions of the same language, domain, level and "
        "padding; the value of a prompt is its contribution to a jackknife of that mean.",
        caution="It belongs to the embedder, the language and the questions, and needs three questions of a "
        "domain.",
        main=True,
        depends_on="samples",
    ),
    Metric(
        "trend_per_doubling",
        "similarity per doubling of the prompt",
        "cosine",
        "higher",
        meaning="The slope of the mean similarity over log₂ of the prompt's tokens, the mean over questions.",
        caution="It assumes a straight line; the cosine of answers to different questions changes with the "
        "length too.",
        main=True,
    ),
    Metric(
        "drift",
        "similarity lost between short and long prompts",
        "cosine",
        "lower",
        meaning="(W₁ + Wₖ)/2 − C₁ₖ: the mean similarity within the shortest level of a question and within "
        "level k, less the mean cosine across the two; without a level, the mean over all longer levels.",
        caution="Zero where the longer prompt changes nothing beyond sampling, also if both levels are "
        "inconsistent.",
        main=True,
        depends_on="level",
    ),
    Metric(
        "across_*",
        "the same question in two languages",
        "cosine",
        "higher",
        meaning="The mean cosine of an answer in one language and one in the other, at the same level.",
        caution="It is not corrected for chance, and left out for languages that the embedder does not read.",
    ),
    Metric(
        "identical_answers",
        "prompts whose answers are all the same text",
        "share",
        None,
        meaning="The share of prompts to which every answer is the same, to the letter.",
        caution="Where it is high the repeats were not independent: a cache, a fixed seed, temperature 0.",
        main=True,
        depends_on="answers",
    ),
    Metric(
        "refusals",
        "refusals",
        "share",
        "lower",
        meaning="The share of requests that did not fail of which the server refused the answer, or the text "
        "has a declining phrase in its first 300 characters and fewer than 150 tokens after it.",
        caution="Texts are recognised by a short list of phrases in each language, not by a reader.",
        main=True,
        within_sample=True,
    ),
    Metric(
        "cut_by_embedder",
        "answers longer than the embedder reads",
        "share",
        "lower",
        meaning="The share of answers whose ends do not count in the cosines.",
        caution="An embedder on a server may not say what it cut: the figure is then unknown, not 0.",
        main=True,
        within_sample=True,
    ),
    Metric(
        "cut_by_max_tokens",
        "answers cut at max-tokens",
        "share",
        "lower",
        meaning="The share of answers that ended because max-tokens was reached.",
        caution="They are scored as far as they go, as the published script does; of recorded answers it is "
        "unknown.",
        main=True,
        within_sample=True,
    ),
    Metric(
        "estimated_tokens",
        "tokens of an answer, estimated",
        "tokens",
        None,
        meaning="The mean length of an answer in tokens, estimated in one way for all models.",
        caution="It is an estimate, fitted to a tokenizer for English.",
    ),
    Metric(
        "prompt_tokens",
        "tokens of a prompt, estimated",
        "tokens",
        None,
        meaning="The length of a prompt in tokens, estimated from its text.",
        caution="It is unknown where a recorded file has only the beginning of a prompt.",
    ),
    Metric(
        "embedder_reads",
        "translated sentences that the embedder matches",
        "share",
        "higher",
        meaning="The share of eight translated sentences whose nearest English sentence is the one they "
        "translate.",
        caution="Below 90 % the figures of that language mean nothing.",
    ),
)
WORDINGS = (
    Metric(
        "wording_share",
        "share of the spread that is due to the wording",
        "share",
        "lower",
        meaning="Σ between / Σ (between + within) over questions: of the variance of the answers' unit "
        "vectors, the part between wordings of a question rather than between repeats of one wording.",
        caution="A small share of a small spread is no fault, and one of a large spread no merit.",
        main=True,
        depends_on="samples",
    ),
    Metric(
        "wording_spread",
        "spread of the answers over wordings",
        "cosine",
        "lower",
        meaning="The variance between the wordings of a question of their answers' unit vectors, beyond what "
        "repeats of one wording would give: the mean cosine within a wording less that across two.",
        caution="It is an unbiased estimate, below 0 where wordings differ less than chance would have them. "
        "It belongs to the embedder and to the model that wrote the wordings.",
        main=True,
        depends_on="samples",
    ),
    Metric(
        "repeat_spread",
        "spread of the answers over repeats",
        "cosine",
        "lower",
        meaning="The variance of the answers' unit vectors within one wording: 1 less their mean cosine.",
        caution="It is 0 where repeats are not independent: a cache, a fixed seed, temperature 0.",
        main=True,
        depends_on="samples",
    ),
    Metric(
        "right_worst_wording",
        "right answers to the worst wording",
        "share",
        "higher",
        meaning="The smallest share of right answers to a wording of a question; the mean over questions.",
        caution="It falls with the number of wordings, and with fewer answers to each.",
        main=True,
        within_sample=True,
        depends_on="samples",
    ),
    Metric(
        "right_mean_wording",
        "right answers, the mean over wordings",
        "share",
        "higher",
        meaning="The mean share of right answers over the wordings of a question; the mean over questions.",
        caution="A question of which a wording has no answer at all is left out.",
        within_sample=True,
        depends_on="samples",
    ),
    Metric(
        "right_best_wording",
        "right answers to the best wording",
        "share",
        "higher",
        meaning="The largest share of right answers to a wording of a question; the mean over questions.",
        caution="It grows with the number of wordings, and with fewer answers to each.",
        main=True,
        within_sample=True,
        depends_on="samples",
    ),
    Metric(
        "right_wording_spread",
        "variance of being right over wordings",
        "value",
        "lower",
        meaning="The variance between wordings of the chance that an answer is right, beyond what repeats of "
        "one wording would give; at most 0.25.",
        caution="It is an unbiased estimate, below 0 where wordings differ less than chance would have them.",
        depends_on="samples",
    ),
    Metric(
        "right_repeat_spread",
        "variance of being right over repeats",
        "value",
        "lower",
        meaning="The variance of being right (1) or not (0) within one wording, the mean over wordings.",
        caution="It is 0 where repeats are not independent: a cache, a fixed seed, temperature 0.",
        depends_on="samples",
    ),
)
"""What several wordings of a question add."""
METRICS = (*PUBLISHED, *JUDGED, *EXPECTED, *WORDINGS, *ADDED)
