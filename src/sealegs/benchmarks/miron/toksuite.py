"""Rows of TokSuite (arXiv:2512.20757, huggingface.co/toksuite), whose questions are texts to be completed:

    {"question": "The capital of France is", "choices": ["London", "Paris", "Rome", "Lyon"], "answer": 1,
     "lang": "eng_Latn", "set_id": "7", "variation_id": "7.0", "subcategories": "Canonical"}

The question is the prefix, the right choice the target, the others are `wrong`. Of the rows of one `set_id`
the clean one is that whose `variation_id` ends in `.0`; the others are changed, each in the way that
`subcategories` names first, which is its category.
"""

from __future__ import annotations

from typing import Any

from sealegs.files.tables import Row

FIELDS = ("question", "choices", "answer", "set_id", "variation_id")
CANONICAL = "Canonical"


def as_example(row: Row, number: int) -> Row:
    """A row of TokSuite with MIRON's fields; any other row as it is."""
    fields = row.fields
    if "prefix" in fields or not {"question", "choices"} <= set(fields):
        return row
    for name in FIELDS:
        if fields.get(name) is None:
            raise row.error(f"the field '{name}' is missing, which rows with 'question' and 'choices' have.")
    choices, answer = fields["choices"], fields["answer"]
    if not (isinstance(choices, list) and all(isinstance(choice, str) for choice in choices)):
        raise row.error("the field 'choices' should be a list of texts.")
    if not (str(answer).isdigit() and int(answer) < len(choices)):
        raise row.error(f"the field 'answer' is {answer!r}: expected the number of a choice, from 0.")
    lang, key = str(fields.get("lang") or ""), row.text("set_id")
    clean_id = f"{lang}-{key}" if lang else key
    made: dict[str, Any] = {
        "prefix": row.text("question").strip(),
        "target": choices[int(answer)],
        "wrong": [choice for index, choice in enumerate(choices) if index != int(answer)],
        "lang": lang,
    }
    if row.text("variation_id").rpartition(".")[2] == "0":
        return row._replace(fields={**made, "id": clean_id, "category": CANONICAL})
    category = row.text("subcategories").partition(",")[0].strip()
    identity = f"{clean_id}-{category}-{number}"
    return row._replace(fields={**made, "id": identity, "category": category, "twin": clean_id})
