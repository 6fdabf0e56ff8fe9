"""What builds and tests the package is named by its content: a tag or a version may come to mean something else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit(path):
    text = path.read_text(encoding="utf-8")
    used = re.findall(r"uses: *(\S+)", text)
    assert used
    assert [name for name in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", name)] == []
    assert "index-url" not in text.lower().replace("_", "-")


def test_what_builds_a_release_is_pinned_and_hashed():
    lines = (ROOT / "scripts" / "build-requirements.txt").read_text(encoding="utf-8").splitlines()
    needs = [line for line in lines if line and not line.startswith("#")]
    assert {"build", "hatchling"} <= {line.split("==")[0] for line in needs}
    assert [line for line in needs if not re.fullmatch(r"[\w.-]+==[\w.]+ --hash=sha256:[0-9a-f]{64}", line)] == []
