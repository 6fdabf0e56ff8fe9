"""store -> report: the paper's experiments run again. The report of a comparison, with more sections."""

from collections.abc import Sequence
from functools import partial

from contone.experiments.report import make, ranks
from contone.experiments.report.make import Report
from contone.experiments.report.ranks import RankGroup
from contone.experiments.report.scores import REPORTED, SHARES, score_folds, share_grid
from contone.experiments.store import Results, Store, load_results
from contone.pages import words
from contone.pages.blocks import Block, Charts, Fold, Grid, Heading, Section, Text
from contone.reproduction import charts, paper, published
from contone.reproduction.errata import Evidence, errata
from contone.reproduction.published import FULL_TO_SHORT, MAIN, RULES, Published, published_figures
from contone.reproduction.specs import specs

TITLE = "Data augmentation for label enhancement, re-run"
TABLES = {
    "recovery": (paper.recovery, REPORTED),
    "augmentation": (paper.augmentation, ("clark", "chebyshev", "kl")),
    "ablation": (paper.ablation, ("chebyshev", "clark", "kl")),
    "prediction": (paper.prediction, REPORTED),
}
"""The experiments with published figures cell by cell: these figures, and the measures that are shown."""

SETS = (
    "spoem, alpha, spo5, cdc, cold, diau, dtt, elu, heat and spo are the ten Yeast sets: the same genes and features, "
    "other labels."
)


def make_report(store: Store) -> Report:
    """Everything that the report says about the results in a store."""
    results, every = load_results(store), specs()
    shares = share_grid(results, MAIN)
    figures = {name: published_figures(results, name, table()) for name, (table, _) in TABLES.items()}
    found = errata(results)
    sentences = _sentences(results, shares, [f for listed in figures.values() for f in listed], found)
    curves = charts.curves(results)
    more: dict[str, Sequence[Block]] = {
        "recovery": [Heading(SHARES), shares] if shares.rows else [],
        "augmentation": [Charts(partial(charts.augmentation, results, figures["augmentation"]))],
        "ablation": [Charts(partial(charts.ablation, results, figures["ablation"]))],
        "prediction": [Text(every["prediction"].note)],
    }
    sections = {name: _experiment(results, name, figures[name], more[name]) for name in TABLES}
    drawn = (Text(every["sensitivity"].note, "note"), Charts(partial(charts.sensitivity, curves), "figures"))
    sections["sensitivity"] = _section("sensitivity", drawn if curves else ())
    absent = [name for name in TABLES if not results.of(name)] + ([] if curves else ["sensitivity"])
    terms = {**{name.capitalize(): f"{text}." for name, text in RULES.items()}, "Sets": SETS}
    summary = make.summary_section(results, sentences, shares, "contone reproduce", absent=absent, terms=terms)
    fill = "contone reproduce --only recovery --datasets artificial"
    instances, manifold, *last = make.closing_sections(results, MAIN, shares, fill)
    ranked = ranks.section(every["ranks"], _rank_groups(results))
    middle = [sections[name] for name in ("augmentation", "ablation", "sensitivity", "prediction")]
    order = [summary, sections[MAIN], ranked, *middle, instances, manifold, _errata_section(found), *last]
    about = f"The experiments of {paper.CITATION} Run again with contone."
    return make.as_report(results, TITLE, about, order, sentences, shares)


def _experiment(results: Results, name: str, figures: Sequence[Published], more: Sequence[Block]) -> Section:
    below = {measure: published.comparison(results, name, measure, figures) for measure in TABLES[name][1]}
    folds = score_folds(results, name, below)
    counted = published.overview(figures)
    table: list[Block] = [Heading(counted.title), counted] if counted.rows else []
    return _section(name, [*more, *table, Heading("All scores"), *folds] if folds else [])


def _section(name: str, blocks: Sequence[Block]) -> Section:
    """A section of an experiment; where it is empty, how to fill it."""
    spec = specs()[name]
    empty = Text("Not in this store yet; this fills it:", code=f"contone reproduce --only {name}")
    return Section(name, spec.title, tuple(blocks) or (empty,), spec.question)


def _errata_section(found: Sequence[Evidence]) -> Section:
    blocks: list[Block] = [
        Text(
            "Where the paper contradicts itself, the data or its own text. Each point is recomputed from the paper's "
            "printed tables, some from our results too, whenever this report is made."
        )
    ]
    for one in found:
        blocks.append(Heading(one.title, f"erratum-{one.id}", "" if one.holds else "not borne out"))
        blocks += [Text(f"Paper: {one.claim}"), Text(f"Found: {one.finding}")]
        if one.numbers:
            table = make.as_table(f"Evidence: {one.title}", one.numbers)
            blocks.append(Fold(f"Evidence, from {one.source}", (table,), style="plain"))
    return Section("errata", "Errata", tuple(blocks))


def _sentences(results: Results, shares: Grid, figures: Sequence[Published], found: Sequence[Evidence]) -> list[str]:
    """What was asked and what came out, in five sentences."""
    datasets, means = results.datasets(MAIN), make.mean_shares(shares)
    if not means:
        return ["No recovery results are in this store yet."]
    methods = {result.method for result in results.of(MAIN) if result.kind == "method"}
    sentences = [
        f"{words.count(len(methods), 'method')} with their presets were asked to recover the label distributions of "
        f"{words.count(len(datasets), 'data set')} from features and logical labels; "
        f"{sum(name in FULL_TO_SHORT for name in datasets)} of the paper's 12 sets are among them.",
        make.furthest(means, len(datasets)),
    ]
    if "LCdr" in means and "Temperature" in means:
        sentences.append(
            f"LCdr with the paper's parameters covers {words.percent(means['LCdr'])}; one line without features, "
            f"softmax(0.2 L), covers {words.percent(means['Temperature'])}."
        )
    sentences += [f"{one.title}: {one.finding}" for one in found if one.id == "uniform"]
    verdicts = [figure.verdict.name for figure in figures]
    counts = {name: verdicts.count(name) for name in RULES}
    judged = len(verdicts) - counts["not comparable"]
    inconsistent = f"the paper's own tables hold {sum(one.holds for one in found)} inconsistencies, recomputed below."
    if not judged:
        last = f"The paper's data sets were not run, so no published figure has one of ours beside it; {inconsistent}"
    else:
        last = (
            f"Of {judged} published figures that could be re-run, {counts['matches']} match, {counts['close']} are "
            f"close, {counts['better']} came out better and {counts['worse']} worse; {inconsistent}"
        )
    return [*sentences, last]


def _rank_groups(results: Results) -> list[RankGroup]:
    """Ranks and tests: of the paper's table, of our rows beside the paper's, and of all rows without the truth."""
    kinds, known = results.kinds(MAIN), paper.counterparts()[MAIN]
    ours = {theirs: row for theirs in paper.METHODS if (row := known.row(theirs, list(kinds))) is not None}
    untold = [name for name, kind in kinds.items() if kind != "oracle"]
    real = [name for name in results.datasets(MAIN) if name != "artificial"]
    of_paper = [name for name in real if name in FULL_TO_SHORT]
    given = [ours["LCdr"]] if "LCdr" in ours else []
    group = partial(ranks.group_of_results, results, MAIN)
    theirs = ranks.rank_all(paper.recovery(), "LCdr")
    printed = paper.average_ranks(), paper.wilcoxon()
    groups = [
        RankGroup("paper", "The paper's own table", tuple(paper.DATASETS), theirs, *printed),
        group("counterparts", "The paper's methods, re-run", list(ours.values()), of_paper, *given),
        group("all", "All rows that have not seen the truth", untold, real),
    ]
    return [group for group in groups if group is not None]
