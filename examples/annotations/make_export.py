"""Make a small export of Label Studio: 240 short messages to a shop, labelled by nine people, three answers each.

    python make_export.py              # writes export.json beside itself

No real person is in it. Each message has shares of what people would call it (billing, delivery, defect, praise), made
from the phrases that it is put together from; each person chooses by these shares, some sharply, one with a liking for
"billing", and one at random. A few answers were cancelled, and twenty messages have an answer known to be right.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

LABELS = ("billing", "delivery", "defect", "praise")
PHRASES = {
    "billing": (
        "the invoice shows the wrong amount",
        "I was charged twice",
        "please send a receipt",
        "the refund is late",
    ),
    "delivery": (
        "the parcel has not arrived",
        "the courier left it in the rain",
        "it came a week late",
        "the box was open",
    ),
    "defect": ("the screen stays black", "a screw is missing", "it stopped working after a day", "the lid is cracked"),
    "praise": (
        "your staff was very kind",
        "I love the colour",
        "it works like a charm",
        "thank you for the quick help",
    ),
}
OPENINGS = ("Hello,", "Good morning,", "To whom it may concern:", "Hi there,")
SHARPNESS = {"ana": 1.6, "ben": 1.3, "cho": 1.2, "dee": 1.0, "eli": 1.0, "fay": 0.9, "gus": 0.8, "hal": 0.7, "ivo": 0.0}


def main(folder: Path, n_items: int = 240, n_answers: int = 3) -> Path:
    rng = np.random.default_rng(5)
    people, tasks = list(SHARPNESS), []
    for i in range(n_items):
        first, second = rng.choice(len(LABELS), 2, replace=False)
        z = np.full(len(LABELS), -1.5)
        z[first], z[second] = 1.5, rng.choice([-1.5, 0.5, 1.3], p=[0.4, 0.3, 0.3])
        said = [rng.choice(PHRASES[LABELS[first]])]
        if z[second] > 0:
            said.append(rng.choice(PHRASES[LABELS[second]]))
        text = f"{rng.choice(OPENINGS)} {' and '.join(said)}."
        annotations = []
        for person in rng.choice(people, n_answers, replace=False):
            leaning = np.array([1.2, 0.0, 0.0, 0.0]) if person == "gus" else 0.0
            p = np.exp(SHARPNESS[person] * z + leaning)
            chosen = LABELS[rng.choice(len(LABELS), p=p / p.sum())]
            annotations.append(annotation(person, chosen, was_cancelled=bool(rng.random() < 0.01)))
        if i % 12 == 0:
            annotations.append(annotation("lead", LABELS[first], ground_truth=True))
        tasks.append({"id": 1000 + i, "data": {"text": text, "length": len(text)}, "annotations": annotations})
    path = folder / "export.json"
    path.write_text(json.dumps(tasks, indent=1), encoding="utf-8")
    return path


def annotation(
    person: str, label: str, *, was_cancelled: bool = False, ground_truth: bool = False
) -> dict[str, object]:
    """An answer as Label Studio writes it."""
    value = {"choices": [label]}
    region = {"from_name": "topic", "to_name": "text", "type": "choices", "value": value}
    person_of_tool = {"id": sum(map(ord, person)), "email": f"{person}@example.org"}
    return {
        "completed_by": person_of_tool,
        "was_cancelled": was_cancelled,
        "ground_truth": ground_truth,
        "result": [region],
    }


if __name__ == "__main__":
    print(main(Path(__file__).parent))
