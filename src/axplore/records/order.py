"""Labels in a fixed order, which arrays over states or actions refer to."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, final, overload

from axplore.errors import InvalidInputError
from axplore.labels import Json, decode_label, encode_label


@final
class Labels(Sequence[Hashable]):
    """Labels of states or actions in the order in which an array lists them.

    An index is meaningless without the order that it belongs to, so whatever holds indices holds its `Labels` too.
    """

    def __init__(self, labels: Iterable[Hashable] = ()) -> None:
        self._labels = tuple(labels)

    @cached_property
    def indices(self) -> dict[Hashable, int]:
        """The index of each label."""
        return {label: index for index, label in enumerate(self._labels)}

    def as_json(self) -> list[Json]:
        """Returns the labels as JSON values."""
        return [encode_label(label) for label in self._labels]

    @classmethod
    def from_json(cls, content: Json) -> Labels:
        """Returns the labels that `as_json` was given."""
        if not isinstance(content, list):
            raise InvalidInputError("labels are not a list")
        return cls(decode_label(label) for label in content)

    @overload
    def __getitem__(self, index: int) -> Hashable: ...
    @overload
    def __getitem__(self, index: slice) -> Labels: ...
    def __getitem__(self, index: int | slice) -> Hashable | Labels:
        return Labels(self._labels[index]) if isinstance(index, slice) else self._labels[index]

    def __len__(self) -> int:
        return len(self._labels)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._labels)

    def __contains__(self, label: object) -> bool:
        return label in self.indices

    def __add__(self, others: Iterable[Hashable]) -> Labels:
        return Labels((*self._labels, *others))

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Labels) and self._labels == other._labels

    def __hash__(self) -> int:
        return hash(self._labels)

    def __repr__(self) -> str:
        return f"Labels({list(self._labels)!r})"
