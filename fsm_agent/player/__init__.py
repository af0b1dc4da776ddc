"""The player: a run as a web page that is stepped through edge by edge, with the machine on the left and what happened on the right.

    player_page(run, "Scenario d")                 # a whole page, one file, no network
    player_fragment(run, "Scenario d", "d")        # one of several players on a page of your own

A page of one's own carries ``player_style()`` once in a ``<style>`` and ``player_script()`` once in a ``<script>`` at the end of its body;
``content_policy`` makes the policy that lets these two run and nothing else.

``moments`` is what happened, in order; ``picture`` lays the machine out and ``svg`` writes it; ``data`` packs it all for ``player.js``;
``embed`` puts it into a page so that no text of a model or a tool can be markup or script.
"""

from fsm_agent.player.embed import content_policy
from fsm_agent.player.page import player_fragment, player_page, player_script, player_style

__all__ = ["content_policy", "player_fragment", "player_page", "player_script", "player_style"]
