"""Rules: judgement, apart from measurement and from presentation."""
