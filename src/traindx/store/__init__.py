"""The run file: one SQLite database a run, written while it trains and read back whole.

`place` names run files, `schema` says what is in one, `codec` and `nouns` turn facts and
verdicts into JSON and back. `writer` is the sink: it keeps rows `waiting` until they are stored.
`recovery` opens a file whatever state its writer left it in, and `reader` gives back its `items`.
"""
