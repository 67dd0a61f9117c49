"""Reports: the page of a run, which opens offline; watching a run; figures; progress."""

from __future__ import annotations

from axplore.report.page import write_report

__all__ = ["write_report"]
