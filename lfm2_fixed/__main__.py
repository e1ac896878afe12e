"""``python -m lfm2_fixed``: the command ``lfm2-fixed``."""

from .cli import main

main()
