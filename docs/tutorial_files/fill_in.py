"""Plays the person who grades: writes what they see, in whole per cent and at least one, into a copy of grade.csv."""

import csv

with open("truth.csv") as file:
    truth = {row["photo"]: row for row in csv.DictReader(file)}
with open("grade.csv") as file:
    rows = list(csv.DictReader(file))
degrees = [name for name in truth[rows[0]["photo"]] if name.endswith("_degree")]
for row in rows:
    seen = [100 * float(truth[row["photo"]][name]) for name in degrees]
    percents = [max(1, round(s)) for s in seen]
    percents[seen.index(max(seen))] += 100 - sum(percents)
    row.update(dict(zip(degrees, percents, strict=True)))
with open("graded.csv", "w", newline="") as file:
    writer = csv.DictWriter(file, rows[0])
    writer.writeheader()
    writer.writerows(rows)
