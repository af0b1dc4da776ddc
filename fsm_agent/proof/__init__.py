"""The halting proof: exhaustive search over the real machine, not over a model of it.

    proof = prove(production(max_steps=30))
    proof.verdict, proof.model_calls.most, [(ending.reason, ending.status) for ending in proof.endings]

What is claimed
---------------
1. Every run halts, within an exact number of model calls, each with so many retries, and of tool calls.
2. It does so for one reason, and these are the reasons, each with its shortest run.
3. No event that an effect can be answered with is refused, no state is a dead end, and nothing leaves ``Halted``.
4. These guards can never trip, or are always shadowed by another.
5. Every cycle of the table passes an edge that spends something of which there is so much only, or that a person has to take
   (``structure``).

All of it of the machine with these guards and these options: retries, a person's approval, summaries, tool servers, a last chance.

Why it is sound
---------------
*The machine is the real one.* Every state is a copy of a ``Run``; what is fed to it are events, as a driver feeds them (``space``).

*Every event is tried, up to what guards can see of it* (``alphabet``, ``sight``). Guards are functions of facts. Of a call or a text
they compare names: so it is enough to try each that a memory still holds (the same again) and a new one. Kinds of observations are
tried all alone, and in batches those that the guards' code names and two others. Tokens, money and seconds are tried as nothing, too
much and unknown: a limit is reached as late as can be by nothing but the last, and as early by the first. Payloads of which no guard's
code speaks are not varied. Texts and numbers in the code of a user's own guard are tried as names of tools and bounds of what is
large. Of the wait that a server asks for, the machine sees only whether it is too long: none, the longest and one beyond it are tried.
A summary is shown to guards by what it cost; it covers one message more than the last, which every history has, since each step adds
to it.

*States are merged only where they have the same future* (``shapes``, ``watched``). Two runs are in the same state when the machine is,
they wait for the same, as much of the step is used up, and the guards' memories are equal, up to a renaming of calls and texts, and but
for two things that are there for people: the content of evidence, and the numbers of steps. The second is watched: a guard that looks
at evidence or counts with a step's number is found out when it does, and from then on held with it. Counters need no cutting: a run
halts when one reaches its limit. A guard alone may be held by its gist (``gists``). After the last chance no guard is shown anything, so
that memories count no more. Each run that is shown, as a witness, a bound or a counterexample, was taken again by the unabridged
machine with all guards, and its states compared with those of the search on the way.

*States are left out only where a known one can do as much* (``space``). A retry, a summary or a person's decision that changes no guard's
memory leads to a state that differs from the one before in nothing but that less is left for the step. Whatever can happen to it can
happen to the one before, as soon, with the same edges, since a reply gives the next step all of it anew; so a run that goes on for ever,
a longest and a shortest run are there without it. That such edges cannot follow one another for ever is no guard's matter: that is
searched with nothing left out (``frame``), in runs of two steps and in their last word. ``tests/test_proof_search.py`` compares the
search with one that leaves nothing out and keeps all guards at once.

*Few guards tell of all* (``prover``), because guards do nothing but stop a run: they halt it, at once or after its last word, which is
the same whichever guard is behind it, and one model call. Where a table has a guard that does more, all are searched together.

What is taken on trust: that guards are pure, and that a predicate's summary is all it sees. That a guard never raises is proved
where all of its memories were judged; the others are named (``judged_in_part``). A space that grows beyond ``max_states`` is
given up: then the verdict is ``undecided``, with the number of model calls up to which it was searched. How long is waited, and whether
a person ever answers, is no matter of the machine's: it counts, and keeps no time.
"""

from fsm_agent.proof.claims import Ending, Proof, prove
from fsm_agent.proof.findings import Bound, Endless
from fsm_agent.proof.trail import Fault
from fsm_agent.proof.watched import Uncheckable

__all__ = ["Bound", "Ending", "Endless", "Fault", "Proof", "Uncheckable", "prove"]
