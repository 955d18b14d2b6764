"""The names of triggers, as shown by `klaw status`."""

START = "start"
WATCH = "watch"
CONVERSATION = "conversation"
INTERVAL = "interval"
FORCED = "forced"
RESUME = "resume"
CONSOLIDATE = "consolidate"
