"""What brings the index up to date, by the names that `klaw status` shows."""

START = "start"
WATCH = "watch"
CONVERSATION = "conversation"
INTERVAL = "interval"
FORCED = "forced"
RESUME = "resume"
