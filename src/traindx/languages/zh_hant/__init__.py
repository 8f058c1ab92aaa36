"""Traditional Chinese, as it is written in Taiwan."""
