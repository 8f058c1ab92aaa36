"""The forms in which a run and its verdict are shown: functions `render(run) -> str`."""
