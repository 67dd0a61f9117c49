"""Reports: the page of a run, which opens offline; watching a run; figures; progress."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axplore.lazy import lazy_names

if TYPE_CHECKING:
    from axplore.report.page import write_report

__all__ = ["write_report"]

__getattr__, __dir__ = lazy_names(__name__, {"axplore.report.page": __all__})
