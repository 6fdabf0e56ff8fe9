"""The whole table at once: read it, recover the degrees, write it."""

from __future__ import annotations

from pathlib import Path

from contone.tables import columns, formats
from contone.tables.order import STDOUT, EnhancedFile, Order


def enhance_whole(order: Order) -> EnhancedFile:
    """Carry out an order with all rows in memory."""
    say = order.progress.note
    with order.progress.working(f"reading {order.source}"):
        before = formats.state_of(order.source)
        table = formats.read(order.source, note=say)
        formats.refuse_changed(order.source, before)
        chosen = columns.choose(
            table.stored.columns, table.numeric, labels=order.labels, features=order.features, ids=order.ids
        )
        degrees = chosen.degrees(order.suffix)
        as_text = order.target == STDOUT or formats.suffix_of(order.target) in formats.SEPARATORS
        formats.refuse_nested(table.stored.schema, as_text=as_text)
        X, L = table.numbers(chosen.features), table.label_numbers(chosen.labels)
    say(f"  {len(X):,} rows; labels: {_listed(chosen.labels)}; features: {_listed(chosen.features)}")
    if chosen.carried:
        say(f"  carried along: {_listed(chosen.carried)}")
    with order.progress.working(f"enhancing with {type(order.method).__name__}"):
        order.method.fit(X, L)
    frame = table.with_columns(degrees, order.method.label_distributions_, chosen, as_text=as_text)
    formats.write(frame, order.target, overwrite=order.overwrite)
    return EnhancedFile(
        path=None if order.target == STDOUT else Path(order.target),
        n_rows=len(frame),
        labels=tuple(chosen.labels),
        features=tuple(chosen.features),
        carried=tuple(chosen.carried),
        degrees=tuple(degrees),
        method=order.method,
        streamed=False,
    )


def _listed(names: list[str]) -> str:
    return columns.listed(names)
