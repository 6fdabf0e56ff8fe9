"""``python -m contone`` is the command ``contone``."""

from contone.cli import main

if __name__ == "__main__":
    main()
