"""Numbers and figures of docs/inversion.md and its notebook: what Inversion recovers, spread, coverage, robustness.

    CONTONE_DATA=... python benchmarks/inversion.py            # all sets available locally, then the figures
    CONTONE_DATA=... python benchmarks/inversion.py --seeds 3  # more seeds (first one is the default)
    CONTONE_DATA=... python benchmarks/inversion.py --studies  # only: rules named by "auto", parameters from the truth

Results go to benchmarks/results/inversion.json, figures to docs/figures/inversion_*.svg. The limits (a regressor
trained on the truth) take minutes; those already in the results file are kept.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.io import loadmat

from contone import CumulativeMass, Inversion, Temperature, Threshold, TopK, evaluate, measures
from contone.enhance.inversion.logistic_normal import Parameters
from contone.limits import limit, recovered
from contone.numerics.simplex import kl_divergence, softmax

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "inversion.json"
FIGURES = HERE.parent / "docs" / "figures"
YEAST = ["spoem", "alpha", "spo5", "cdc", "cold", "diau", "dtt", "elu", "heat", "spo"]
SETS = [*(f"Yeast_{name}" for name in YEAST), "SJAFFE", "Movie"]
CELLS = ["chebyshev", "clark", "canberra", "kl", "cosine", "intersection"]
HIGHER = {"cosine", "intersection"}


def load(stem: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    content = loadmat(Path(os.environ["CONTONE_DATA"]) / f"{stem}.mat")
    X, D = (np.asarray(content[key], dtype=float) for key in ("features", "labels"))
    D /= D.sum(axis=1, keepdims=True)
    return X, D, CumulativeMass().apply(D).astype(float)


def mean_kl(D: np.ndarray, answer: np.ndarray) -> float:
    return float(np.mean(kl_divergence(D, answer)))


def centred_log(D: np.ndarray) -> np.ndarray:
    """log degrees, zeros as 0.001, centred by row: what the spread is measured on."""
    Z = np.log(np.maximum(D, 1e-3))
    return Z - Z.mean(axis=1, keepdims=True)


def paper_rows() -> dict[tuple[str, str], float]:
    """The published LCdr row, by measure and set."""
    path = HERE.parent / "src" / "contone" / "reproduction" / "paper" / "recovery.csv"
    with path.open() as file:
        return {(r["measure"], r["dataset"]): float(r["value"]) for r in csv.DictReader(file) if r["method"] == "LCdr"}


def better(name: str, a: float, b: float) -> bool:
    return a > b if name in HIGHER else a < b


def one_set(stem: str, limits: dict[str, float], seeds: int) -> dict:
    X, D, L = load(stem)
    q = D.shape[1]
    uniform = np.full_like(D, 1 / q)
    limits.setdefault(stem, 0.0)
    if not limits[stem]:
        limits[stem] = min(limit(X, L, D).candidates.values())
    kl_uniform = mean_kl(D, uniform)
    temperature = Temperature().fit_enhance(X, L)
    runs = []
    for seed in range(seeds):
        start = time.process_time()
        method = Inversion(random_state=seed).fit(X, L)
        runs.append((time.process_time() - start, mean_kl(D, method.label_distributions_), method))
    seconds, kl, method = runs[0]
    lower, upper = method.intervals(level=0.9)
    without = Inversion(features=False).fit_enhance(X, L)
    scores = {
        name: evaluate(D, answer)
        for name, answer in (("ours", method.label_distributions_), ("uniform", uniform), ("temperature", temperature))
    }
    return {
        "n": len(D), "d": X.shape[1], "q": q,
        "kl": kl, "kl_uniform": kl_uniform, "kl_temperature": mean_kl(D, temperature), "kl_limit": limits[stem],
        "recovered": recovered(kl, kl_uniform, limits[stem]),
        "recovered_seeds": [recovered(k, kl_uniform, limits[stem]) for _, k, _ in runs],
        "recovered_without_features": recovered(mean_kl(D, without), kl_uniform, limits[stem]),
        "spread": method.spread_, "true_spread": float(np.sqrt(np.mean(np.square(centred_log(D))))),
        "coverage_90": float(np.mean((lower <= D) & (upper >= D))),
        "seconds": seconds, **{k: method.solution_.info[k] for k in ("effective_sample_size", "split_r_hat")},
        "cells": {name: {m: float(s[m]) for m in CELLS} for name, s in scores.items()},
        "cells_kl_reversed": measures.get("kl_reversed_drop")(D, method.label_distributions_),
    }  # fmt: skip


def model_data(seed: int, spread: float, n: int = 800, q: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """X (n, 3) and D (n, q) drawn from the model."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Z = X @ rng.normal(size=(3, q)) * 0.5 + rng.normal(size=(n, q)) @ (rng.normal(size=(q, q)) / q + 0.7 * np.eye(q))
    Z -= Z.mean(axis=1, keepdims=True)
    return X, softmax(spread * Z / Z.std())


def simulations() -> dict:
    """Coverage at several levels, the spread against the truth, and flipped labels, on data from the model."""
    levels = [0.5, 0.7, 0.8, 0.9, 0.95]
    coverage, spreads, noise = [], [], {}
    for seed, spread in enumerate([0.15, 0.3, 0.6, 1.2, 2.0]):
        X, D = model_data(seed, spread)
        method = Inversion().fit(X, CumulativeMass().apply(D))
        coverage.append([float(np.mean((a <= D) & (b >= D))) for a, b in (method.intervals(level=v) for v in levels)])
        spreads.append([spread, method.spread_])
    X, D = model_data(9, 0.5)
    L = CumulativeMass().apply(D).astype(float)
    rng = np.random.default_rng(0)
    for share in (0.0, 0.05, 0.1):
        flipped = np.where(rng.random(L.shape) < share, 1 - L, L)
        flipped[flipped.sum(axis=1) == 0, 0] = 1
        row = {"plain": mean_kl(D, Inversion().fit_enhance(X, flipped))}
        if share:
            row["noise"] = mean_kl(D, Inversion(noise=share).fit_enhance(X, flipped))
        noise[str(share)] = row
    return {"levels": levels, "coverage": coverage, "spreads": spreads, "noise": noise}


def named_rules() -> dict[str, list[list[str]]]:
    """The rule that made the labels and the one that "auto" names, for real sets under six rules each."""
    found = {}
    for stem in ("Yeast_alpha", "Yeast_spo", "Yeast_diau", "Yeast_heat", "SJAFFE", "Movie"):
        X, D, _ = load(stem)
        X, D, q = X[:1500], D[:1500], D.shape[1]
        rules = [*map(CumulativeMass, (0.3, 0.5, 0.7)), Threshold(1 / q), Threshold(1.5 / q), TopK(2)]
        fits = (Inversion(degradation="auto", n_sweeps=40, n_burn=20).fit(X, rule.apply(D)) for rule in rules)
        found[stem] = [[str(rule), str(fit.degradation_)] for rule, fit in zip(rules, fits, strict=True)]
        print(stem, found[stem], flush=True)
    return found


def oracles(limits: dict[str, float], seeds: int = 3) -> dict[str, dict[str, float]]:
    """What the fit without features would recover with the true mean, variances or correlations in place of its own."""
    found = {}
    for stem in ("Yeast_alpha", "Yeast_heat", "Yeast_diau", "Yeast_dtt", "SJAFFE"):
        X, D, L = load(stem)
        Z, uniform = centred_log(D), mean_kl(D, np.full_like(D, 1 / D.shape[1]))
        true_mean, true_sigma = Z.mean(axis=0)[None], np.cov(Z.T)
        shares: dict[str, list[float]] = {}
        for seed in range(seeds):
            method = Inversion(features=False, random_state=seed).fit(X, L)
            fitted, mean, sigma = method.fit_, method.coefficients_, method.covariance_
            size = np.trace(sigma) / np.trace(true_sigma)
            deviation, true_deviation = np.sqrt(np.diag(sigma)), np.sqrt(np.diag(true_sigma))
            ratio, own = np.sqrt(size) * true_deviation / deviation, deviation / true_deviation
            for name, parameters in {
                "fit": (mean, sigma),
                "true mean": (true_mean, sigma),
                "true variances": (mean, sigma * np.outer(ratio, ratio)),
                "true correlations": (mean, true_sigma * np.outer(own, own)),
                "true Sigma": (mean, true_sigma),
                "true mean and Sigma": (true_mean, true_sigma),
            }.items():
                longer = replace(fitted.settings, n_sweeps=400)
                model = replace(fitted, parameters=Parameters(*parameters, fitted.parameters.theta), settings=longer)
                answer = model.posterior(X, L, np.random.default_rng(seed)).mean
                shares.setdefault(name, []).append(recovered(mean_kl(D, answer), uniform, limits[stem]))
        found[stem] = {name: float(np.mean(share)) for name, share in shares.items()}
        print(stem, {name: f"{share:.3f}" for name, share in found[stem].items()}, flush=True)
    return found


def figures(results: dict) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "contone", "font.size": 9, "axes.spines.top": False,
                                "axes.spines.right": False})  # fmt: skip
    import matplotlib.pyplot as plt

    save = {"metadata": {"Date": None}, "bbox_inches": "tight"}
    sets = results["sets"]
    names = [s.removeprefix("Yeast_") for s in sets]

    figure, axis = plt.subplots(figsize=(6.5, 2.8))
    at = np.arange(len(names))
    axis.bar(at - 0.2, [100 * r["recovered"] for r in sets.values()], 0.4, label="Inversion", color="#2b6cb0")
    axis.bar(at + 0.2, [100 * recovered(r["kl_temperature"], r["kl_uniform"], r["kl_limit"]) for r in sets.values()],
             0.4, label="softmax(0.2 L)", color="#cbd5e0")  # fmt: skip
    axis.axhline(100, lw=0.8, color="k")
    axis.set_xticks(at, names, rotation=45, ha="right")
    axis.set_ylabel("recovered (%)")
    axis.legend(frameon=False, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    figure.savefig(FIGURES / "inversion_recovered.svg", **save)

    figure, axis = plt.subplots(figsize=(3.4, 3.2))
    truth = [r["true_spread"] for r in sets.values()] + [s for s, _ in results["model"]["spreads"]]
    found = [r["spread"] for r in sets.values()] + [s for _, s in results["model"]["spreads"]]
    axis.loglog(truth[: len(sets)], found[: len(sets)], "o", label="real sets")
    axis.loglog(truth[len(sets) :], found[len(sets) :], "s", mfc="none", label="drawn from the model")
    axis.plot([0.08, 2.5], [0.08, 2.5], "k", lw=0.8)
    axis.set(xlabel="true spread", ylabel="estimated spread")
    axis.legend(frameon=False)
    figure.savefig(FIGURES / "inversion_spread.svg", **save)

    figure, axis = plt.subplots(figsize=(3.4, 3.2))
    for (spread, _), row in zip(results["model"]["spreads"], results["model"]["coverage"], strict=True):
        axis.plot(results["model"]["levels"], row, "o-", ms=3, lw=1, label=f"spread {spread:g}")
    axis.plot([0.45, 1], [0.45, 1], "k", lw=0.8)
    axis.set(xlabel="level", ylabel="share of degrees covered")
    axis.legend(frameon=False)
    figure.savefig(FIGURES / "inversion_calibration.svg", **save)

    X, D, L = load("SJAFFE") if "SJAFFE" in sets else (None, None, None)
    if X is None:
        return
    method = Inversion().fit(X, L)
    prior, (lower, upper) = method.predict(X), method.intervals(level=0.9)
    figure, axes = plt.subplots(1, 3, figsize=(7, 2.4), sharey=True)
    for axis, i in zip(axes, (0, 80, 150), strict=True):
        at, mean = np.arange(D.shape[1]), method.label_distributions_[i]
        axis.errorbar(at, mean, np.maximum([mean - lower[i], upper[i] - mean], 0), fmt="o", ms=4, capsize=2,
                      label="posterior, 90 %")  # fmt: skip
        axis.plot(at, prior[i], "_", ms=12, color="grey", label="prior given x")
        axis.plot(at, D[i], "x", color="k", label="truth")
        axis.set_xticks(at, [f"{j + 1}{'*' if L[i, j] else ''}" for j in at])
        axis.set_xlabel(f"label, row {i} (* marked)")
    axes[0].set_ylabel("degree")
    axes[0].legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=3)
    figure.savefig(FIGURES / "inversion_rows.svg", **save)


def table(results: dict) -> str:
    head = ["set", "uniform", "softmax(0.2 L)", "Inversion", "limit", "recovered", "without X", "spread (true)"]
    head += ["in 90 % interval", "CPU s"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for stem, r in results["sets"].items():
        lines.append(
            f"| {stem.removeprefix('Yeast_')} | {r['kl_uniform']:.4f} | {r['kl_temperature']:.4f} | {r['kl']:.4f} | "
            f"{r['kl_limit']:.4f} | {100 * r['recovered']:.0f} % | {100 * r['recovered_without_features']:.0f} % | "
            f"{r['spread']:.3f} ({r['true_spread']:.3f}) | {100 * r['coverage_90']:.0f} % | {r['seconds']:.1f} |"
        )
    return "\n".join(lines)


def fill(results: dict) -> None:
    """Put the numbers into docs/inversion.md, between its markers."""
    page, s, noise = HERE.parent / "docs" / "inversion.md", results["summary"], results["model"]["noise"]
    lines = [
        table(results),
        "",
        f"Mean over the ten Yeast sets: {100 * s['yeast_recovered']:.1f} % recovered, {s['yeast_seconds']:.1f} CPU "
        f"seconds a set. Of the {s['cells']} cells (ten sets, six measures), Inversion is ahead of the uniform "
        f"distribution in {s['ahead_of_uniform']} and of softmax(0.2 L) in {s['ahead_of_temperature']}; it is ahead "
        f"of the published LCdr row in {s['ahead_of_published_lcdr']} of its {s['published_lcdr_cells']} cells.",
        "",
        "| labels flipped | KL, `noise=0` | KL, `noise=` that share |",
        "|---|---|---|",
        *(
            f"| {100 * float(share):.0f} % | {row['plain']:.4f} | {row.get('noise', row['plain']):.4f} |"
            for share, row in noise.items()
        ),
    ]
    _put(page, "numbers", lines)
    if "oracles" in results:
        names = list(next(iter(results["oracles"].values())))
        rows = [
            f"| {stem.removeprefix('Yeast_')} | " + " | ".join(f"{100 * row[name]:.1f}" for name in names) + " |"
            for stem, row in results["oracles"].items()
        ]
        _put(
            page.with_name("inversion-notebook.md"),
            "oracles",
            ["| set | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|", *rows],
        )


def _put(page: Path, name: str, lines: list[str]) -> None:
    """The lines into the page, between the marker of that name and the next end."""
    before, rest = page.read_text().split(f"<!-- {name} -->\n", 1)
    after = rest.split("<!-- end -->", 1)[1]
    page.write_text(before + f"<!-- {name} -->\n" + "\n".join(lines) + "\n<!-- end -->" + after)


def summary(results: dict) -> dict:
    yeast = {s: r for s, r in results["sets"].items() if s.startswith("Yeast")}
    paper = paper_rows()
    cells = [(s, m, r["cells"]["ours"][m], r["cells"]) for s, r in yeast.items() for m in CELLS]
    published = [
        better(m, r["cells_kl_reversed"] if m == "kl" else r["cells"]["ours"][m], paper[key])
        for s, r in yeast.items()
        for m in CELLS
        if (key := (m, s.removeprefix("Yeast_"))) in paper
    ]
    return {
        "yeast_recovered": float(np.mean([r["recovered"] for r in yeast.values()])),
        "yeast_seconds": float(np.mean([r["seconds"] for r in yeast.values()])),
        "cells": len(cells),
        "ahead_of_uniform": sum(better(m, v, c["uniform"][m]) for _, m, v, c in cells),
        "ahead_of_temperature": sum(better(m, v, c["temperature"][m]) for _, m, v, c in cells),
        "ahead_of_published_lcdr": sum(published),
        "published_lcdr_cells": len(published),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--studies", action="store_true", help="only the studies of rules and of parameters")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    limits = results.setdefault("limits", {})
    sets = results.setdefault("sets", {})
    if arguments.studies:
        results["rules"], results["oracles"] = named_rules(), oracles(limits)
        RESULTS.write_text(json.dumps(results, indent=1))
        fill(results)
        return
    for stem in arguments.sets:
        sets[stem] = one_set(stem, limits, arguments.seeds)
        print(stem, f"{100 * sets[stem]['recovered']:.1f} %", f"{sets[stem]['seconds']:.1f} s", flush=True)
        RESULTS.write_text(json.dumps(results, indent=1))
    results["model"] = simulations()
    results["summary"] = summary(results)
    RESULTS.write_text(json.dumps(results, indent=1))
    print(table(results), json.dumps(results["summary"], indent=1), json.dumps(results["model"]["noise"]), sep="\n")
    fill(results)
    figures(results)


if __name__ == "__main__":
    main()
