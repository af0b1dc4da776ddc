"""Why agents stopped, over many recorded runs, and what other limits would have done."""
