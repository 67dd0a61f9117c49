"""MountainCar through a key: the two numbers of the observation become cells of a coarse grid.

axplore explore gym:MountainCar-v0 --key examples.gallery.mountain_car:cell --set start=pinned --radius 4 --epsilon 2
"""


def cell(observation: object) -> tuple[int, int]:
    """The position in tenths, and the velocity in hundredths.

    A cell hides where in it the car is, so that what is proven holds of the cells only as far as the next cell depends
    on nothing else: `axplore doctor` says how far that is.
    """
    position, velocity = observation  # type: ignore[misc]
    return round(10 * float(position)), round(100 * float(velocity))
