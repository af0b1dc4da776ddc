// The guards: what each read last, as a bar against its limit.

const TRIPS = 1;
const WARNS = 2;
const AT_LEAST = 4;

class Gauges {
  constructor(root, data) {
    this.data = data;
    this.words = data.words;
    this.judged = new Map([...new Set(data.guards.map((guard) => guard.watches))].map((state) => [state, this.counts(state)]));
    this.groups = [...this.judged.keys()].map((state) => this.group(state));
    root.querySelector(".fsm-gauges").append(...this.groups.map((each) => each.element));
  }

  // By position, how often the guards of this state had been judged.
  counts(state) {
    const { edges, rows, unjudged } = this.data;
    const counts = new Uint32Array(edges.length + 1);
    edges.forEach((row, i) => {
      counts[i + 1] = counts[i] + (rows[row][0] === state && !unjudged.includes(row));
    });
    return counts;
  }

  group(state) {
    const element = make("div", "fsm-group");
    const caption = make("p", "fsm-caption");
    const gauges = this.data.guards.filter((guard) => guard.watches === state).map((guard) => this.gauge(guard));
    element.append(caption, ...gauges.map((each) => each.row));
    return { state, element, caption, gauges };
  }

  gauge(guard) {
    const row = make("div", "fsm-gauge");
    const name = make("bdi", "fsm-guard", guard.name);
    name.title = guard.reason;
    const bar = make("div", "fsm-bar");
    bar.setAttribute("role", "meter");
    bar.setAttribute("aria-label", guard.name);
    bar.setAttribute("aria-valuemin", "0");
    const level = make("div", "fsm-level");
    bar.append(level);
    const value = make("span", "fsm-value");
    const mark = make("span", "fsm-mark");
    row.append(name, bar, value, mark);
    return { guard, row, bar, level, value, mark };
  }

  show(at) {
    for (const { state, element, caption, gauges } of this.groups) {
      const counts = this.judged.get(state);
      const now = at > 0 && counts[at] > counts[at - 1];
      element.classList.toggle("fsm-now", now);
      caption.textContent = this.when(state, counts, at, now);
      for (const gauge of gauges) this.read(gauge, counts[at]);
    }
  }

  when(state, counts, at, now) {
    if (now) return fill(this.words.judged, { state });
    if (!counts[at]) return fill(this.words.notJudged, { state });
    let last = at;
    while (counts[last - 1] === counts[at]) last--;
    return fill(this.words.judgedAt, { state, step: this.data.steps[last - 1] });
  }

  // Show what the guard read when it was judged so many times.
  read({ guard, row, bar, level, value, mark }, count) {
    const found = count ? [guard.values[count - 1]].flat() : [0, 0, 0];
    const [read, flags = 0, limit = guard.limit] = found;
    const word = flags & TRIPS ? this.words.trips : flags & WARNS ? this.words.warns : "";
    const share = limit > 0 ? Math.min(Math.max(read / limit, 0), 1) || 0 : Number(read > 0);
    row.classList.toggle("fsm-trips", Boolean(flags & TRIPS));
    row.classList.toggle("fsm-warns", Boolean(flags & WARNS));
    level.style.width = `${100 * share}%`;
    mark.textContent = word;
    value.textContent = count ? `${flags & AT_LEAST ? "≥ " : ""}${figure(read)}/${figure(limit)}` : "–";
    bar.setAttribute("aria-valuemax", "100");
    bar.setAttribute("aria-valuenow", String(Math.round(100 * share)));
    const sentence = fill(this.words.reading, { value: figure(read), limit: figure(limit) });
    const least = flags & AT_LEAST ? this.words.atLeast : "";
    bar.setAttribute("aria-valuetext", count ? [least, sentence, word].filter(Boolean).join(" ") : this.words.noReading);
  }
}
