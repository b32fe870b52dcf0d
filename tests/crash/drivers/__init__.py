"""The agents that the recovery matrix is run with, one file each.

A file has NAME, as connect.json calls the driver; TAKES_FOLLOW_UPS, the
driver's own answer; CONFIG, what connect.json has of it otherwise than the
harness's default; WRONG_START, the steps of an agent whose process starts and
whose handshake fails.
"""

import importlib
import pathlib

ALL = [importlib.import_module("drivers." + path.stem)
       for path in sorted(pathlib.Path(__file__).parent.glob("[a-z]*.py"))]
