"""`reward-audit --help` against `python -c "import click"`: what the command adds to its own library.

Both are started in turn, so often, and the medians of the wall times compared. Nothing is loaded: `--pairs`
is taken and means nothing here.

Goal: at most 1.3 times.
"""

import shutil
import statistics
import sys
from pathlib import Path

import measure


def command() -> list[str]:
    """The installed command of this interpreter, or what it does where only the checkout is there."""
    beside = shutil.which("reward-audit", path=str(Path(sys.executable).parent))
    if beside:
        return [beside, "--help"]
    return [sys.executable, "-c", "from audit.__main__ import main; main()", "--help"]


def main() -> None:
    parser = measure.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=30, help="each is started so often (%(default)s)")
    options = parser.parse_args()
    ours = command()
    click = [sys.executable, "-c", "import click"]
    measure.child(ours), measure.child(click)  # the first start also writes the bytecode
    times = [(measure.child(ours).spent.wall, measure.child(click).spent.wall) for _ in range(options.rounds)]
    help_seconds, click_seconds = (statistics.median(column) for column in zip(*times, strict=True))
    goal = measure.Goal("help_seconds", help_seconds, click_seconds, "at_most", 1.3)
    measure.finish(options, "startup", [goal], rounds=options.rounds, is_installed=len(ours) == 2)


if __name__ == "__main__":
    main()
