"""The tests of the shop: what a customer can reach, what nobody meets, and whether anything has changed."""

from shop import Shop

from axplore.testing import assert_never, assert_reaches, assert_unchanged


def test_a_customer_can_pay() -> None:
    """In the mean it takes 3.05 steps."""
    assert_reaches(Shop, "thanks", within=5)


def test_nobody_meets_an_error() -> None:
    """Whatever is pressed."""
    assert_never(Shop, "error", within=6, at_most=0.05)


def test_nothing_has_changed() -> None:
    """Since the map was committed."""
    assert_unchanged(Shop, "maps/shop.json", radius=6)
