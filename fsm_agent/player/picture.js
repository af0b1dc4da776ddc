// The machine: which edge was just taken, how often each was taken so far, and the state that the run is in.

class Picture {
  constructor(root, data) {
    this.data = data;
    this.lines = [...root.querySelectorAll("[data-row]")].map((element) => ({ element, rows: element.dataset.row.split(" ").map(Number) }));
    this.states = [...root.querySelectorAll("[data-state]")];
    this.halted = root.querySelector(".fsm-halted");
    this.taken = new Uint32Array(data.rows.length);
    this.at = 0;
  }

  show(at) {
    const forwards = this.count(at);
    const current = at ? this.data.edges[at - 1] : null;
    const state = at ? this.data.rows[current][1] : "Deciding";
    for (const { element, rows } of this.lines) {
      const times = rows.reduce((sum, row) => sum + this.taken[row], 0);
      const now = rows.includes(current);
      element.classList.toggle("fsm-taken", times > 0);
      element.classList.toggle("fsm-now", now);
      element.querySelector(".fsm-mark").textContent = now ? "▶ " : "";
      const count = element.querySelector(".fsm-count");
      if (count) count.textContent = times ? `×${times}` : "";
    }
    for (const each of this.states) each.classList.toggle("fsm-now", each.dataset.state === state);
    if (current === null) return;
    const edge = this.lines.find(({ rows }) => rows.includes(current)).element;
    const path = edge.querySelector(".fsm-path");
    path.style.setProperty("--fsm-length", path.getTotalLength());
    if (state === "Halted") this.halted.classList.toggle("fsm-answers", edge.classList.contains("fsm-answers"));
    if (forwards) edge.parentNode.append(edge); // above the others, and drawn from its beginning
  }

  // How often each edge was taken up to here. Gives whether this is further on than it was.
  count(at) {
    const forwards = at > this.at;
    if (!forwards) {
      this.taken.fill(0);
      this.at = 0;
    }
    while (this.at < at) this.taken[this.data.edges[this.at++]]++;
    return forwards;
  }
}
