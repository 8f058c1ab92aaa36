"""The run file: one SQLite database a run, written while it trains and read back whole.

`place` names run files, `schema` says what is in one, `codec` and `nouns` turn facts and
verdicts into JSON and back, `numbers` turns columns of numbers into bytes. `writer` is the sink: it
keeps items `waiting` until they are stored. `recovery` opens a file whatever state its writer left
it in, and `reader` gives back one `stretch` of the run after another: `stretches` reads the packed
rows of today, and `rows` those of the first two schemas.
"""
