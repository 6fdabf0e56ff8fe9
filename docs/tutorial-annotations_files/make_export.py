"""Make a small export of Label Studio: 240 short messages to a shop, labelled by nine people, three answers each.

    python make_export.py      # writes export.json, truth.csv and new.csv

No real person is in it. What people call a message (billing, delivery, defect, praise) depends on the phrases that
it is put together from; each person chooses by that, some sharply, gus with a liking for "billing", and ivo at random.
A few answers were cancelled, and twenty messages have an answer by the lead that is known to be right. truth.csv holds
the share of the nine people who would choose each label; new.csv 200 more messages with theirs.
"""

from __future__ import annotations

import csv
import json

import numpy as np

LABELS = ("billing", "defect", "delivery", "praise")
PHRASES = {
    "billing": "the invoice shows the wrong amount|I was charged twice|please send a receipt|the refund is late",
    "defect": "the screen stays black|a screw is missing|it stopped working after a day|the lid is cracked",
    "delivery": "the parcel has not arrived|the courier left it in the rain|it came a week late|the box was open",
    "praise": "your staff was very kind|I love the colour|it works like a charm|thank you for the quick help",
}
OPENINGS = ("Hello,", "Good morning,", "To whom it may concern:", "Hi there,")
SHARPNESS = {"ana": 1.6, "ben": 1.3, "cho": 1.2, "dee": 1.0, "eli": 1.0, "fay": 0.9, "gus": 0.8, "hal": 0.7, "ivo": 0.0}
RNG = np.random.default_rng(5)


def message() -> tuple[str, np.ndarray]:
    """A text, and log weights of what it is about."""
    first, second = RNG.choice(len(LABELS), 2, replace=False)
    z = np.full(len(LABELS), -1.5)
    z[first], z[second] = 1.5, RNG.choice([-1.5, 0.5, 1.3], p=[0.4, 0.3, 0.3])
    said = [RNG.choice(PHRASES[LABELS[j]].split("|")) for j in (first, second) if z[j] > 0]
    return f"{RNG.choice(OPENINGS)} {' and '.join(said)}.", z


def chances(person: str, z: np.ndarray) -> np.ndarray:
    """How a person chooses."""
    x = SHARPNESS[person] * z + (2.0 * np.eye(len(LABELS))[0] if person == "gus" else 0.0)
    return np.exp(x) / np.exp(x).sum()


def annotation(person: str, label: str, **flags: bool) -> dict[str, object]:
    """An answer as Label Studio writes it."""
    region = {"from_name": "topic", "to_name": "text", "type": "choices", "value": {"choices": [label]}}
    who = {"id": sum(map(ord, person)), "email": f"{person}@example.org"}
    return {"completed_by": who, "was_cancelled": False, "ground_truth": False, "result": [region], **flags}


def write_truth(name: str, rows: list[tuple[object, ...]]) -> None:
    with open(name, "w", newline="") as file:
        csv.writer(file).writerows([("item", "text", *(f"{label}_degree" for label in LABELS)), *rows])


tasks, truth, new = [], [], []
for number in range(1000, 1440):
    text, z = message()
    shares = np.mean([chances(person, z) for person in SHARPNESS], axis=0)
    (truth if number < 1240 else new).append((number, text, *shares))
    if number >= 1240:
        continue
    answers = [
        annotation(person, RNG.choice(LABELS, p=chances(person, z)), was_cancelled=bool(RNG.random() < 0.01))
        for person in RNG.choice(list(SHARPNESS), 3, replace=False)
    ]
    if number % 12 == 4:
        answers.append(annotation("lead", LABELS[int(z.argmax())], ground_truth=True))
    tasks.append({"id": number, "data": {"text": text, "words": len(text.split())}, "annotations": answers})

with open("export.json", "w") as file:
    json.dump(tasks, file, indent=1)
write_truth("truth.csv", truth)
write_truth("new.csv", new)
