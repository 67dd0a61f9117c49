"""Reports: an atlas as a page that opens offline, a run that is watched, runs compared."""

from __future__ import annotations

from axplore.report.page import write_report

__all__ = ["write_report"]
