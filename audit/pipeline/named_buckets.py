"""The bucket set that a command line or a config names, and what is told of a text that names none."""

from audit.verbs.gaps import PRESETS, BucketSet, buckets_from_text
from audit.words.nearest import did_you_mean


def named_buckets(text: str, near: float | None) -> BucketSet:
    """A preset, or own edges. Raises ValueError that says what is wrong and what is expected."""
    try:
        return buckets_from_text(text, near)
    except ValueError as error:
        if not str(error).endswith("is not a number"):
            raise
        word = text.strip()
        what = error if "," in word else f"{word!r} is no bucket set{did_you_mean(word, PRESETS)}"
        raise ValueError(
            f"{what}: expected {' or '.join(PRESETS)}, edges such as 0,.1,.3, or intervals such as "
            "'[0,1] (1,3] (3,..)'"
        ) from error
