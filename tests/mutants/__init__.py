"""Mutation tests of the table, the machine and the guards: each small fault that is put into them has to be noticed.

    python -m tests.mutants                  every mutant, with a table at the end
    python -m tests.mutants --only progress  those whose name has the word

A mutant is a source text with one change: an edge removed, two edges swapped, an edge that spends nothing or is there without its
option, ``>`` for ``>=``, a counter that is not reset or not counted up, ``or`` for ``and``. It is written into a copy of the project in a temporary folder. First the claims of ``fsm-agent check``
are compared with those of the unchanged package; what they do not notice is left to the fast tests of that module. A mutant that
nobody notices has to stand in ``equivalent.toml``, with the reason why it changes nothing.
"""
