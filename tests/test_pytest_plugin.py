"""The pytest plugin: each assertion passes, fails or is undecided, in words that name what to do."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from axplore import assertion_context
from axplore.assertions import assert_never, assert_reaches, assert_unchanged

pytest_plugins = ["pytester"]

SHOP = Path(__file__).parent.parent / "examples" / "shop"

IS_INSTALLED = any(point.name == "axplore" for point in entry_points(group="pytest11"))
PLUGIN = ("-p", "axplore" if IS_INSTALLED else "axplore.pytest_plugin")

RELEASES = '''
from shop import SCREENS, Shop

class Lost(Shop):
    """A release in which no product can be looked at."""
    screens = SCREENS | {"results": {"first": "home", "back": "home"}}

class Slower(Shop):
    """A release that asks for an address before the payment."""
    screens = SCREENS | {"basket": {"pay": "address", "back": "home"}, "address": {"next": "payment"}}

class Rarer(Shop):
    """A release in which more payments are refused."""
    accepted = 0.6

class NewError(Shop):
    """A release in which one payment in four ends in an error."""
    screens = SCREENS | {"error": {"again": "home"}}

    def step(self, button):
        if button == "confirm" and self._random.random() < 0.25:
            self.screen = "error"
            return self.screen
        return super().step(button)

class NewButton(Shop):
    """A release with another button, which leads nowhere new."""
    screens = SCREENS | {"thanks": {"again": "home", "basket": "basket"}}
'''


@pytest.fixture(scope="module", autouse=True)
def _everything_is_loaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Loads once what is loaded on first use: each inner run forgets what it has loaded itself."""
    before = assertion_context.current
    folder = tmp_path_factory.mktemp("loading")
    try:
        assertion_context.current = assertion_context.Context(update=True, pages=lambda: folder)
        assert_unchanged("confusing-chain", folder / "map.json", radius=2)
        assertion_context.current = assertion_context.Context(pages=lambda: folder)
        assert_unchanged("confusing-chain", folder / "map.json", radius=2)
        with pytest.raises(AssertionError, match="Undecided"):
            assert_never("confusing-chain", "nowhere", within=2, at_most=0.01, max_steps=50)
        assert_reaches("combination-lock", "s3", within=3)
    finally:
        assertion_context.current = before


@pytest.fixture
def shop(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder with the shop, its map, and other releases of it."""
    for path in ("shop.py", "maps/shop.json"):
        target = pytester.path / path
        target.parent.mkdir(exist_ok=True)
        target.write_bytes((SHOP / path).read_bytes())
    (pytester.path / "releases.py").write_text(RELEASES, encoding="utf-8")
    pytester.syspathinsert()
    return pytester


def outcome(shop: pytest.Pytester, body: str, *options: str) -> pytest.RunResult:
    """Runs a test with this body."""
    shop.makepyfile(
        test_it="from axplore.testing import *\nfrom shop import *\nfrom releases import *\n"
        f"def test_it(axplore, request):\n    {body}\n"
    )
    return shop.runpytest_inprocess(*PLUGIN, "-q", "-p", "no:xdist", "-p", "no:randomly", *options)


def failure(shop: pytest.Pytester, body: str, *options: str) -> str:
    """Runs a test that fails, and returns what it prints."""
    result = outcome(shop, body, *options)
    result.assert_outcomes(failed=1)
    return "\n".join(line.removeprefix("E").strip() for line in result.outlines if line.startswith("E "))


def test_the_suite_of_the_shop_passes(shop: pytest.Pytester) -> None:
    (shop.path / "test_shop.py").write_bytes((SHOP / "test_shop.py").read_bytes())
    shop.runpytest_inprocess(*PLUGIN, "-q").assert_outcomes(passed=3)


def test_a_goal_is_reached_in_a_few_hundred_steps(shop: pytest.Pytester) -> None:
    body = 'assert assert_reaches(Shop, "thanks", within=6, max_steps=2000).proven'
    outcome(shop, body).assert_outcomes(passed=1)


def test_a_goal_that_takes_longer_is_refuted_with_its_route_and_page(shop: pytest.Pytester) -> None:
    message = failure(shop, 'assert_reaches(Rarer, "thanks", within=3.4)')
    assert "Refuted: it is false that the policy to thanks of the atlas reaches thanks" in message
    assert "The route: home -[basket]-> basket -[pay]-> payment -[confirm]-> thanks" in message
    page = Path(message.partition("The page: ")[2].strip())
    assert page.is_file()
    assert shop.path / ".pytest_cache" in page.parents


def test_a_goal_that_does_not_exist_is_refuted(shop: pytest.Pytester) -> None:
    message = failure(shop, 'assert_reaches(Shop, "thankx", within=5)')
    assert "Refuted: thankx is not reached within 5 expected steps. It was never seen." in message


def test_a_budget_that_is_too_small_leaves_a_goal_undecided(shop: pytest.Pytester) -> None:
    message = failure(shop, 'assert_reaches(Shop, "thanks", within=5, max_steps=200)')
    assert "Undecided whether" in message
    assert "steps of 200 were taken" in message


def test_a_budget_can_be_set_for_all_tests(shop: pytest.Pytester) -> None:
    message = failure(shop, 'assert_reaches(Shop, "thanks", within=5)', "-o", "axplore_max_steps=150")
    assert "steps of 150 were taken" in message
    result = outcome(shop, "pass", "-o", "axplore_max_seconds=never")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines("*axplore_max_seconds is 'never'; it must be a number above 0*")


def test_a_policy_of_ones_own_is_tested_without_exploring(shop: pytest.Pytester) -> None:
    body = (
        'assert_reaches(Shop, "thanks", within=9, policy={"home": "basket", "basket": "pay", "payment": "confirm"}.get)'
    )
    outcome(shop, body).assert_outcomes(passed=1)
    back = 'policy={"home": "basket", "basket": "pay", "payment": "back"}.get'
    slow = f'assert_reaches(Shop, "thanks", chance=0.9, steps=20, {back})'
    assert "Refuted: it is false that the policy" in failure(shop, slow)


def test_the_fixture_explores_within_the_budget(shop: pytest.Pytester) -> None:
    body = "assert axplore.explore(Shop, radius=6, epsilon=2).run.steps_in_all <= 300"
    outcome(shop, body, "-o", "axplore_max_steps=300").assert_outcomes(passed=1)


def test_a_state_that_is_met_too_often_is_refuted_with_the_actions_that_lead_to_it(shop: pytest.Pytester) -> None:
    message = failure(shop, 'assert_never(NewError, "error", within=6, at_most=0.05)')
    assert "Refuted: it is false that error is met within 6 steps with a probability of at most 0.05" in message
    assert "confirm in payment led there" in message


def test_a_state_never_met_may_be_too_likely_after_a_few_steps(shop: pytest.Pytester) -> None:
    message = failure(shop, 'assert_never(Shop, "error", within=6, at_most=0.05, max_steps=1500)')
    assert "Undecided whether error is met within 6 steps" in message


def test_an_error_may_be_meant_by_a_function(shop: pytest.Pytester) -> None:
    message = failure(shop, 'assert_never(NewError, lambda screen: "err" in screen, within=6, at_most=0.05)')
    assert "Refuted" in message


FOUND = {
    "Lost": ("product: lost, proven", "first in results: product gone (1 before), home new (1): changed"),
    "Slower": (
        "payment: slower, proven",
        "thanks: slower, proven",
        "pay in basket: address new (1), payment gone (1 before)",
    ),
    "Rarer": ("confirm in payment: thanks 9",),
    "NewError": ("confirm in payment: thanks 9", "error new"),
    "NewButton": ("thanks: same", "It now has the action basket."),
}


@pytest.mark.parametrize("release", FOUND)
def test_a_change_is_found_in_the_words_of_diff(shop: pytest.Pytester, release: str) -> None:
    message = failure(shop, f'assert_unchanged({release}, "maps/shop.json", radius=6, seed=5)')
    assert "The system has changed since shop.json was written." in message
    for words in FOUND[release]:
        assert words in message, message
    assert "run pytest with --axplore-update" in message
    assert Path(message.partition("The page: ")[2].strip()).name == "changes.html"


@pytest.mark.parametrize("seed", range(1, 6))
def test_the_same_system_has_not_changed(shop: pytest.Pytester, seed: int) -> None:
    outcome(shop, f'assert_unchanged(Shop, "maps/shop.json", radius=6, seed={seed})').assert_outcomes(passed=1)


def test_only_what_is_asked_for_fails(shop: pytest.Pytester) -> None:
    body = 'assert_unchanged(Rarer, "maps/shop.json", radius=6, fail_on={})'
    outcome(shop, body.format('"lost"')).assert_outcomes(passed=1)
    assert "changed" in failure(shop, body.format('["lost", "rows"]'))
    assert "other" in failure(shop, body.format('"other"'))


def test_a_map_is_written_when_asked_for_and_only_then(shop: pytest.Pytester) -> None:
    body = 'assert_unchanged(Rarer, "new/map.json", radius=6)'
    assert "There is no map" in failure(shop, body)
    assert "--axplore-update" in failure(shop, body)
    assert not (shop.path / "new").exists()
    outcome(shop, body, "--axplore-update").assert_outcomes(passed=1)
    outcome(shop, body).assert_outcomes(passed=1)
    content = json.loads((shop.path / "new" / "map.json").read_text(encoding="utf-8"))
    assert content["draws"]["payment"]["confirm"].keys() == {"thanks", "payment"}


def test_an_exploration_that_proves_nothing_writes_no_map(shop: pytest.Pytester) -> None:
    body = 'assert_unchanged(Shop, "new.json", radius=6, max_steps=500)'
    assert "Undecided whether new.json still holds." in failure(shop, body, "--axplore-update")
    assert not (shop.path / "new.json").exists()


def test_a_map_of_other_settings_is_refused(shop: pytest.Pytester) -> None:
    message = failure(shop, 'assert_unchanged(Shop, "maps/shop.json", radius=7)')
    assert "was made for radius 6" in message


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": "axplore map", "version": 2}', "\0" * 100])
def test_a_damaged_map_is_a_failure_that_names_it(shop: pytest.Pytester, content: str) -> None:
    (shop.path / "maps" / "shop.json").write_text(content, encoding="utf-8")
    message = failure(shop, 'assert_unchanged(Shop, "maps/shop.json", radius=6)')
    assert "shop.json" in message
    assert "Restore the map, or run pytest with --axplore-update" in message


def test_workers_of_xdist_do_not_meet(shop: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    shop.makepyfile(
        test_it="import pytest\nfrom axplore.testing import *\nfrom shop import *\nfrom releases import *\n"
        '@pytest.mark.parametrize("release", [Lost, Rarer])\n'
        'def test_it(release):\n    assert_unchanged(release, "maps/shop.json", radius=6)\n'
    )
    result = shop.runpytest_subprocess(*PLUGIN, "-q", "-n", "2", timeout=300)
    result.assert_outcomes(failed=2)
    pages = {line.partition("The page: ")[2].strip() for line in result.outlines if "The page: " in line}
    assert len({page for page in pages if Path(page).is_file()}) == 2


def test_a_suite_without_axplore_does_not_wait_for_it() -> None:
    command = "import sys, axplore.pytest_plugin; print(sorted({'numpy', 'numba', 'scipy'} & set(sys.modules)))"
    printed = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True, timeout=60)
    assert printed.stdout.strip() == "[]"
