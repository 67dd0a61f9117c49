from __future__ import annotations

import logging

import pytest

from axplore.errors import AxploreError, WorldError, printable

ESCAPES = "\x1b[2J\x1b]0;title\x07 \x9b31m\r\x00\u202e"


def test_plain_text_is_printed_as_it_is() -> None:
    text = "S_L→ ⊆ K, ε = 0.1, 状態 é"
    assert printable(text) is text


def test_nothing_that_a_terminal_obeys_is_left_and_nothing_is_lost() -> None:
    shown = printable(f"a{ESCAPES}b")
    assert shown.isprintable()
    assert shown == r"a\x1b[2J\x1b]0;title\x07 \x9b31m\r\x00\u202eb"
    assert printable("two\nlines") == "two\nlines"
    assert printable("\ud800") == r"\ud800"


@pytest.mark.parametrize("kind", [AxploreError, WorldError])
def test_an_error_shows_what_a_stranger_wrote_in_a_printable_form(kind: type[AxploreError]) -> None:
    assert str(kind(f"the program said {ESCAPES}")).isprintable()


def test_what_is_logged_is_printable_whoever_prints_it(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("axplore").warning("the program said %s, %d times", ESCAPES, 3)
    (record,) = caplog.records
    assert record.getMessage().isprintable()
    assert record.getMessage().endswith(", 3 times")
