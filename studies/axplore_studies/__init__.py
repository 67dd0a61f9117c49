"""The studies behind the figures of the documentation; run from a clone, as they are not part of the wheel."""
