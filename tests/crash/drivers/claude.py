"""Claude Code, stream-json over stdin and stdout (dispatch.md 14)."""

NAME = "claude"
TAKES_FOLLOW_UPS = True
CONFIG = {}
# Another permission mode than it was started with.
WRONG_START = ["wrong-mode"]
