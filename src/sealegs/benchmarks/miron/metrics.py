"""Every metric of MIRON, the published ones first."""

from __future__ import annotations

from sealegs.page.metrics import Metric

TARGET_BYTES = "target_bytes"

PUBLISHED = (
    Metric(
        "lev_score",
        "Levenshtein score",
        "score",
        "higher",
        meaning="100 × (1 − edits / characters of the longer one), the mean over the examples. Edits are the "
        "fewest insertions, deletions and substitutions of characters between the target and the "
        "continuation, which is cut after as many words as the target has, or at a line break.",
        caution="A wrong form of the right word gets most of its points: see what repeating a word of the "
        "prompt scores.",
        main=True,
    ),
    Metric(
        "target_confidence",
        "target confidence",
        "score",
        "higher",
        meaning="100 × exp(mean of ln P(token | the text before it)) over the tokens of a target, the "
        "mean over the examples; 0 for a target without a token of its own.",
        caution="It is a mean over tokens, so that models with other tokenizers are not compared by it.",
        main=True,
        needs_coverage=True,
    ),
)
"""The figures of the published script."""

ADDED = (
    Metric(
        "rescaled_score",
        "score between repeating a word of the prompt (0) and all right (100)",
        "points",
        "higher",
        meaning="100 · (1 − Σ (100 − lev_score) / Σ (100 − copy_score)) over the examples.",
        caution="It is negative where repeating a word scores more; with typos that scores little, because "
        "the rarest word is often the misspelt one.",
        main=True,
    ),
    Metric(
        "copy_score",
        "score of repeating the rarest word of the prompt",
        "score",
        None,
        meaning="The Levenshtein score of a word copied from the prefix: the word that the fewest "
        "prefixes of the data in its language have, and of several such words the last.",
        caution="It is a property of the data; in Morphology it reaches two thirds of the points and more.",
        main=True,
    ),
    Metric(
        "exact_match",
        "exact match",
        "share",
        "higher",
        meaning="The share of continuations, cut as for the Levenshtein score, that are the target character "
        "for character.",
        caution="Another right answer counts as wrong.",
    ),
    Metric(
        "accepted_match",
        "right: the target or another accepted answer",
        "share",
        "higher",
        meaning="The share of texts that begin with the target or an accepted answer, whose last word ends "
        "there; spaces and the Unicode form make no difference, case does.",
        caution="A right answer that the data does not list counts as wrong.",
        main=True,
    ),
    Metric(
        "choice_match",
        "the likeliest choice is right",
        "share",
        "higher",
        meaning="The share of examples with wrong choices in which log P(answer) / characters is higher for "
        "the target than for all of them (acc_norm of lm-evaluation-harness).",
        caution="With three wrong choices guessing gives a quarter.",
    ),
    Metric(
        "relative_drop",
        "right answers lost to the change, of those right on the clean version",
        "points",
        "lower",
        meaning="100 · (1 − Σ right / Σ right on the clean version) over the examples that were changed, as "
        "by typos; right is the likeliest choice where there are several, else the text.",
        caution="It is over pairs of a changed example and its clean version; TokSuite divides by the "
        "accuracy on all clean ones.",
    ),
    Metric(
        "answer_probability",
        "probability of a right continuation",
        "share",
        "higher",
        meaning="Σ P(answer) over the target and the accepted answers, each the product of the "
        "probabilities of its own tokens; the mean over the examples.",
        caution="Unknown where tokens merge across the boundary; other tokens of the same text do not count.",
    ),
    Metric(
        "bits_per_byte",
        "bits per byte of the target",
        "bits",
        "lower",
        meaning="Σ bits / Σ bytes over the examples: −log₂ P of the target's tokens, summed over all "
        "tokens of all targets, over the targets' bytes in UTF-8. Comparable between tokenizers.",
        caution="A Russian letter has two bytes: compare models within a language. Examples whose "
        "tokens merge across the boundary are left out.",
        main=True,
        weight=TARGET_BYTES,
    ),
    Metric(
        TARGET_BYTES,
        "bytes of the target",
        "count",
        None,
        meaning="The length of the target in UTF-8, its leading space included: the mean over the examples.",
        caution="It is a property of the data, and the weight of an example in bits_per_byte.",
    ),
    Metric(
        "target_tokens",
        "tokens of the target",
        "count",
        None,
        meaning="Into how many tokens the tokenizer splits the target after its prefix, the mean over "
        "examples.",
        caution="Neither more nor fewer is better by itself.",
    ),
    Metric(
        "boundary_merges",
        "tokens that merge across the boundary",
        "share",
        "lower",
        meaning="The share of examples whose prefix is split differently alone and before the target.",
        caution="Of these the probability of the target in its own tokens is unknown.",
    ),
    Metric(
        "targets_merged_into_prefix",
        "targets that merge wholly into the prefix",
        "share",
        "lower",
        meaning="The share of targets that have no token of their own after the prefix.",
        caution="Their confidence is 0, as published, whatever the model knows.",
    ),
    Metric(
        "knows",
        "right and sure",
        "share",
        "higher",
        meaning="The share of examples with a right text in which a right continuation has "
        "a probability of one half or more, of those where both are known.",
        caution="Sure is under this tokenizer's own tokens.",
    ),
    Metric(
        "doubts",
        "right and not sure",
        "share",
        None,
        meaning="The share of examples with a right text in which a right continuation has "
        "a probability of less than one half, of those where both are known.",
        caution="The rest may be with other right continuations, or with other tokens of the same text.",
    ),
    Metric(
        "slips",
        "sure and not right",
        "share",
        "lower",
        meaning="The share of examples with a wrong text in which a right continuation has "
        "a probability of one half or more, of those where both are known.",
        caution="With greedy decoding it is near 0 by arithmetic: many mean that the server does not use it.",
    ),
    Metric(
        "does_not_know",
        "neither right nor sure",
        "share",
        "lower",
        meaning="The share of examples with a wrong text in which a right continuation has "
        "a probability of less than one half, of those where both are known.",
        caution="A right continuation that the data does not list counts here.",
    ),
    Metric(
        "score_drift",
        "score lost to typos",
        "points",
        "lower",
        meaning="The Levenshtein score of the clean version minus that of the same example with typos, "
        "the mean over the examples with typos.",
        caution="Where the clean version is not named it is found by its text; negative is a gain.",
        main=True,
    ),
    Metric(
        "confidence_drift",
        "confidence lost to typos",
        "points",
        "lower",
        meaning="The target confidence of the clean version minus that of the same example with typos, "
        "the mean over the examples with typos.",
        caution="A model without confidence on the clean text has nothing to lose.",
        main=True,
    ),
    Metric(
        "tokens_and_*",
        "rank correlation with the number of tokens",
        "correlation",
        None,
        meaning="Spearman's ρ of the number of the target's tokens and the metric within each category "
        "of each language, the mean of these weighted by their examples.",
        caution="Longer and rarer words have more tokens and are harder: it does not say that tokens are the "
        "cause.",
        main=True,
    ),
)
"""Ours."""

STRINGS = (
    Metric(
        "tokenizer_cost",
        "bits lost to other tokens that begin with the target",
        "bits",
        "lower",
        meaning="log₂ P(string) − log₂ P(its own tokens), with P(string) the sum over all token sequences "
        "whose text begins with the target (Vieira et al. 2024); the mean over the examples.",
        caution="It is at least this where the sum is not complete: see strings_known.",
        main=True,
    ),
    Metric(
        "boundary_cost",
        "bits lost to the token before the target",
        "signed_bits",
        "lower",
        meaning="log₂ P(string | prefix as text) − log₂ P(string | prefix's tokens): what "
        "token healing gains, the mean over the examples.",
        caution="It may be negative, where the end of a token says that a word is over.",
    ),
    Metric(
        "string_bits_per_byte",
        "bits per byte of the target as a string",
        "bits",
        "lower",
        meaning="Σ −log₂ P(string) / Σ bytes of the target in UTF-8, over the examples; P(string) is the sum "
        "over all token sequences whose text begins with the target.",
        caution="It is an upper bound where the sum is not complete.",
        weight=TARGET_BYTES,
    ),
    Metric(
        "strings_known",
        "targets whose probability as a string is known to 0.001 bits",
        "share",
        None,
        meaning="The share of targets whose bounds are at most 0.001 bits apart.",
        caution="Where it is below 1 the costs of some targets are bounds.",
    ),
)
"""Ours, of the target as a string: what the tokenizer costs (`strings`)."""
METRICS = (*PUBLISHED, *ADDED, *STRINGS)

QUADRANTS = ("knows", "doubts", "slips", "does_not_know")
"""The metrics of which an example is one: whether its text is right, and whether the model was sure."""

TOKENIZED_TEXTS = (
    Metric(
        "tokens_per_word",
        "Tokens per word",
        "count",
        "lower",
        "How many tokens a word takes on average: the fewer, the cheaper and faster the same text.",
    ),
    Metric(
        "characters_per_token",
        "Characters per token",
        "count",
        "higher",
        "How many characters a token covers on average: the more, the more text fits into the context.",
    ),
    Metric(
        "whole_words",
        "Words that are one token",
        "share",
        "higher",
        "The share of words that are not split.",
    ),
)
"""Of a tokenizer without a model: of whole texts, by language."""
TOKENIZED_TARGETS = tuple(each for each in ADDED if each.name in ("target_tokens", "boundary_merges"))
"""Of a tokenizer without a model: of the target, by language and category."""
