"""The tutorial's plugin is tested where it lies; the packaging tests install it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "klaw-hello"))
