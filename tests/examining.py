"""What axe, an examination of accessibility, finds on a page."""

from __future__ import annotations

from importlib.resources import files

from browsing import Browser

AXE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def findings(browser: Browser) -> list[str]:
    """What axe finds on the page that is open, without what is only a minor or moderate nuisance."""
    browser.run(AXE)
    found = browser.driver.execute_async_script("const done = arguments[0]; axe.run(document).then(done)")
    return [
        f"{violation['id']}: {node['target']} {node.get('failureSummary', '')}"
        for violation in found["violations"]
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]
