"""Results as lines of JSON that survive an interruption."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a file; none if there is no file.

    The last line may have been cut by an interruption; it is passed over, and removed so that the next line is whole.
    """
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    return [json.loads(line) for line in whole.splitlines()]


def sort_lines(path: Path, order: Callable[[dict[str, Any]], Any]) -> None:
    """Puts the lines of a file in a fixed order, so that it does not tell which worker was faster."""
    lines = set(path.read_text(encoding="utf-8").splitlines())
    ordered = sorted(lines, key=lambda line: (order(json.loads(line)), line))
    partial = path.with_suffix(".partial")
    partial.write_text("".join(f"{line}\n" for line in ordered), encoding="utf-8")
    partial.replace(path)
