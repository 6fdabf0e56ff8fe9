"""Every promise in docs/guarantees.md names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "guarantees.md"


def functions(path: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}


def test_every_promise_names_tests_and_every_test_exists():
    if not PAGE.exists():
        pytest.skip("the documents are not beside the tests")
    text = PAGE.read_text().partition("## What an answer does not depend on")[0]  # a table with a test of its own
    promises = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| promise")]
    assert len(promises) > 20
    for line in promises:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", line)
        assert named, f"a promise without a test: {line}"
        for file, test in named:
            assert test in functions(ROOT / file), f"{file} has no {test}"
