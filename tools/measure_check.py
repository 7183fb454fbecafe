"""How often RGB's lenient check is right on the labelled replies, with 95 % intervals by Wilson.

python tools/measure_check.py            # prints the tables
python tools/measure_check.py --write    # and writes docs/tables/rgb-check.md
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from rgb_labelled import LANGUAGES, Part, as_replies, labelled, table

PAGE = Path(__file__).parents[1] / "docs" / "tables" / "rgb-check.md"
HEAD = """# How often RGB's lenient check is right

<!-- Written by `python tools/measure_check.py --write`. -->

Precision and recall of the check that [rgb](../rgb.md#deciding-on-one-answer) describes, on replies that
were labelled without it, with 95 % intervals by Wilson. Only by the first set, and those whose errors were
counted and not read, no rule was changed: the errors on all others, of those in the style of chat models on
one half, were read, and rules changed after, so that their tables are no estimate for new replies."""
NATURAL = """Replies as models give them in such a task, and not made to break rules, by a writer who had
read none of the rules. Of the plain right answers 55 of 58 and 43 of 45 were found right; the others give
both parts of an answer apart, or round it."""
HELD_OUT = """Written to be hard, and labelled, by language models that did not know the rules. The rules
were developed on other replies; the errors on these were read twice, later those of 13 whose verdict a
new rule changed, and then the missed declines. Just before the second reading, which is the fairer
estimate for new wordings, precision and recall were .946 and .858 (English) and .932 and .913 (Chinese)
for rejection, .950 and .968, .958 and .952 for right answers, and .878 and .887, .976 and .922 for error
detection."""
FRESH = """Right and wrong answers, declines and reports as current models write them, in three parts by
writers who had read none of the rules, written when these were there. Precision and recall before their
errors were read:

| | second part, English | second part, Chinese | third part, English | third part, Chinese |
| --- | --- | --- | --- | --- |
| rejection | .808 and 1 | .912 and 1 | .875 and 1 | .886 and 1 |
| right answer | .971 and .847 | .963 and .906 | .964 and .914 | .953 and .965 |
| error detection | .938 and 1 | 1 and 1 | .879 and .967 | .913 and .955 |

Of the plain right answers of the third part 82 of 92 and 64 of 67 were found right. On an earlier set,
written to break the rules (487 and 306 replies): rejection .871 and .984, .911 and 1; right answers .966
and .997, .957 and 1; error detection .790 and .961, .721 and 1. With the present rules:"""
PLAIN = """About 90 wordings with many names, dates and numbers, by a writer who had not read the rules:
none of them declines or reports anything."""
REAL = """SmolLM2-135M-Instruct on the starter sets: few of its replies decline or report anything. Before
their errors were read, 7 of 9 rejections on 145 of them were false."""
NEGATED = """The hardest of the same model: of 5,640 further replies, sampled at temperature 0.8 and asked
for with eight instructions to decline or to check the documents, those with a word of negation or
correction, chosen at random and labelled by reading. It writes much that nobody can make sense of: a fifth
was left out for that. Precision and recall of rejection were .378 and .933 on 287 of them, of which two rules
for bare negations went, and then .571 and .933 on 179 others; of error detection .593 and .842 there."""
CHAT_STYLE = """Wordings after the manner of current chat models by a writer who had read no rule, each filled
with three facts: many wrong answers beside remarks on documents, and errors that are not of the documents.
Those on which careful readers may differ are left out. Before any was read, rejection had .762 and .980
(English), .769 and 1 (Chinese), right answers .914 and .973, .925 and 1, error detection .806 and .935, .929
and 1.
Then rules were changed by the errors on the wordings with odd numbers; later again, for wrong answers taken
for right, of which those with odd numbers all went and none of the others. On those, counted and not read:

| | English, before | English, after | Chinese, before | Chinese, after |
| --- | --- | --- | --- | --- |
| rejection | .755 and .986 | .855 and .986 | .833 and 1 | .833 and 1 |
| right answer | .912 and .965 | .913 and .982 | .960 and 1 | .960 and 1 |
| error detection | .889 and 1 | .889 and 1 | 1 and 1 | 1 and 1 |

Rules of remarks on some documents, from other wordings, then gave rejection .877 and .986, 1 and 1 there;
the eight replies whose verdict they changed were read. Documents said to disagree count as a report since,
which changed three labels in each language. Later all missed declines were read, and the one wording of an
even number among them was added ("isn't part of it"). On all:"""
REAL_7301 = """SmolLM2-135M-Instruct on a starter set of seed 7301, questions drawn at random, and 80 replies
to requests to decline; labelled by reading before the check was applied. Before the errors on the odd lines
were read, 10 of 25 rejections in English were false, and the only report, in Chinese; before those on all
were, 8 of 23, and 6 of 68 right answers."""
REAL_UNSEEN = """SmolLM2-135M-Instruct at temperature 0.2 on starter sets of seeds 8812 and 9127, drawn
when the rules were there: 198 English replies to the usual prompts, questions drawn at random for every
noise rate and ability, 166 to seven requests to decline and 92 to five to report errors, and 59 Chinese
ones, which all ended at the limit of tokens (256, of 44 of them 64). As hardly any reply to the first four
requests to decline and three to report did so, three and two more were made. Labelled by reading before the
check was applied; 17 and 3 on which careful readers may differ are left out. When first measured rejection
had .766 and .973, right answers .961 and 1, error detection .944 and 1 (English). The errors were counted and
not read: to the usual prompts, of which one reply declines and one reports, two rejections, two right answers
and one report were false. Later the false rejections on odd lines were read, of which two went, and then all
others, of which four went."""
REAL_60317 = """SmolLM2-135M-Instruct at temperature 0.2 on starter sets of seeds 60317 and 60893: 320
English and 54 Chinese replies to the usual prompts, questions drawn at random, 100 to five requests to
say where the documents do not tell, 66 to four to report errors; all in Chinese were cut off. Labelled by
one reader, who had not seen the check, of whom 39 and 4 on which readers may differ are left out. When
first measured rejection had .733 and .957, right answers .933 and .990, error detection .958 and .920.
Most of the false rejections are of replies that make no sense; by them one rule was narrowed, of
documents that are described, and later, with those of the two sets above, rules of repeated instructions,
of what the question does not mention, and of matters of the reply's own."""
REAL_71933 = """SmolLM2-135M-Instruct at temperature 0.2 on starter sets of seeds 71933 and 72277: 260
replies to the usual prompts, questions drawn at random for every noise rate and ability, 110 to five
requests to say where the documents do not tell, and 60 to four to report errors; 42 were cut off at 256
tokens. All were labelled by reading before the check was applied to any, by one reader, who had changed the
rules before and changed none while reading; 48 on which careful readers may differ, most of which
contradict themselves, are left out. When first measured rejection had .816 and 1, right answers .974 and 1,
error detection .765 and .929. To the usual prompts no reply declines or reports anything; one rejection,
one right answer and one report were false there, and six of the other eight false rejections are of replies
to requests to report errors. Then the errors were read, and rules changed for two of the rejections, of
replies that give a value and say that nothing is told about that value, or give it under a heading, and two
of the reports."""
HEDGED = """Declines, many beside something else that the documents tell, and values given with a hedge, each
wording with the right value and with a wrong one, and titles with a word of declining; by a writer
who knew the rules. They were written before rules were changed for such wordings, and their errors counted.
Before: rejection .720 and .900, .658 and 1; right answers 1 and .975, .960 and .960. Later errors on declines
in English were read; no rule was changed by them."""
SET_ASIDE = """Wrong answers that name the right value only to set it aside, and right ones that name a wrong
one so, or remark on other things, written before there were rules for them: precision and recall of right
answers were .674 and 1, .682 and 1. No false answer is known of them, so that contradicting a document is
not found as a report. Documents said to disagree are one since, which changed two labels."""
NAMED = """By a writer who knew the rules, before any was changed for them: a value given beside another one
that is only named, with the right value and a wrong one in either place, titles that are words of silence or
negation, headings over errors or over none, units and surnames. On the half that was not read right answers
had .774 and .953 before, .884 and 1 after (English), .847 and 1 both times (Chinese), and error detection
.833 and 1, then 1 and 1, and .333 and 1, then .5 and 1."""
REWORDED = """By a writer who knew the rules, before any was changed for them: another value after the
right one that is set aside, each also the other way round; declines of what is more or other than the
answer, or of anything but other cases; reports without a word for an error; and of each kind
replies that only look so.
Before: rejection .676 and .920, .833 and 1; right answers .876 and .944, .883 and .978; error detection .667
and .222, .621 and .750."""
RAG_STYLE = """About 200 wordings of current models that answer from documents, by a writer who had read no
rule, filled with twelve facts (Chinese: ten). Of each wording that failed one reply was shown when rules were
changed for them; all other errors on those with even numbers were counted and not read. On these, precision
and recall:

| | English, before | English, after | Chinese, before | Chinese, after |
| --- | --- | --- | --- | --- |
| rejection | .889 and 1 | 1 and 1 | 1 and .981 | 1 and 1 |
| right answer | .954 and .984 | .996 and .996 | .957 and 1 | 1 and 1 |
| error detection | 1 and .726 | 1 and 1 | .976 and .800 | 1 and 1 |

On all, right answers had .948 and .990, .954 and 1 before, rejection .941 and 1, 1 and .973, error detection
.988 and .874, .988 and .889. With the present rules:"""
PARTS: dict[Part, tuple[str, str]] = {
    "natural": ("Replies that no rule was changed by", NATURAL),
    "heldout": ("Replies held out", HELD_OUT),
    "fresh": ("Fresh replies", FRESH),
    "plain": ("Plain right answers", PLAIN),
    "plain_other": ("Declines, reports, wrong and denied answers", "By the same writer."),
    "real": ("Replies of a real model", REAL),
    "negated": ("Replies of a real model with negations", NEGATED),
    "real_7301": ("Replies of a real model to a fresh set", REAL_7301),
    "real_unseen": ("Replies of a real model to two sets that were not seen", REAL_UNSEEN),
    "real_60317": ("Replies of a real model to two more sets", REAL_60317),
    "real_71933": ("Replies of a real model to sets of two further seeds", REAL_71933),
    "chat_style": ("Replies in the style of chat models", CHAT_STYLE),
    "hedged": ("Declines and hedged answers", HEDGED),
    "set_aside": ("Replies that set a value aside", SET_ASIDE),
    "named": ("Values that are only named", NAMED),
    "reworded": ("Values set aside before another, and remarks of more and other", REWORDED),
    "rag_style": ("Answers from documents in the style of current models", RAG_STYLE),
}
DOCUMENTS = """## Documents in place of replies

As a model gives them that copies or invents: irrelevant documents, and sentences with the right answer, of a
starter set (seed {seed}). No rule of the check was changed by them, but Chinese documents of other seeds that
it took for a decline or a report were worded anew.

| | irrelevant | said to decline | said to report an error | with the right answer | not right |
| --- | ---: | ---: | ---: | ---: | ---: |
{rows}
"""
SEED = 47
"""Of a starter set whose errors nobody read while the rules were written."""


def page() -> str:
    sections = [HEAD]
    for part, (title, words) in PARTS.items():
        counts = ", ".join(f"{len(labelled(lang, part))} in {name}" for lang, name in LANGUAGES.items())
        rows = "\n".join(table(LANGUAGES, part))
        sections.append(f"## {title}\n\n{counts}.\n\n{words}\n\n{rows}")
    counted = {name: as_replies(lang, seed=SEED) for lang, name in LANGUAGES.items()}
    rows = "\n".join(f"| {name} | {' | '.join(map(str, counts))} |" for name, counts in counted.items())
    return "\n\n".join([*sections, DOCUMENTS.format(seed=SEED, rows=rows)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/tables/rgb-check.md")
    write = parser.parse_args().write
    text = page()
    sys.stdout.write(text)
    if write:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
