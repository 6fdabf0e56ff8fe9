"""Plays the person who grades: writes what they see, in steps of five per cent, into the empty cells of grade.csv."""

import csv

truth = {row["photo"]: row for row in csv.DictReader(open("truth.csv"))}
rows = list(csv.DictReader(open("grade.csv")))
degrees = [name for name in truth[rows[0]["photo"]] if name.endswith("_degree")]
for row in rows:
    seen = [20 * float(truth[row["photo"]][name]) for name in degrees]
    steps = [int(s) for s in seen]
    by_rest = sorted(range(len(seen)), key=lambda j: steps[j] - seen[j])
    for j in by_rest[: 20 - sum(steps)]:
        steps[j] += 1
    row.update({name: 5 * step for name, step in zip(degrees, steps)})
with open("graded.csv", "w", newline="") as file:
    writer = csv.DictWriter(file, rows[0])
    writer.writeheader()
    writer.writerows(rows)
