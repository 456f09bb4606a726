"""The command `reward-audit`, also `python -m audit`."""

from audit.faces.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
