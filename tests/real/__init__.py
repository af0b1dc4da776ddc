"""A real model, small enough for any machine, runs the loop to an end: ``make test-real``. No part of ``make test``: it needs the network, once."""
