// What happened: the edge, what was said and done in the step so far, why the run halted, and the messages that the model is shown.

const TONES = ["plain", "call", "error", "answer"];

class Said {
  constructor(root, data) {
    this.data = data;
    this.words = data.words;
    this.find = (name) => root.querySelector(`.fsm-${name}`);
    this.messages = this.find("messages");
    this.messages.addEventListener("toggle", () => this.showMessages(this.at));
  }

  show(at) {
    this.at = at;
    this.showEdge(at);
    this.showItems(at);
    this.showEnding(at);
    this.showMessages(at);
  }

  text(place) {
    return this.data.texts[place];
  }

  row(at) {
    return this.data.rows[this.data.edges[at - 1]];
  }

  // Where the run is, in words.
  place(at) {
    if (!at) return this.words.beginning;
    const step = this.data.steps[at - 1];
    return fill(step ? this.words.place : this.words.early, { k: at, n: this.data.edges.length, step });
  }

  // The same, with the edge.
  spoken(at) {
    if (!at) return this.words.beginning;
    const [source, , dest, label] = this.row(at);
    return `${this.place(at)}: ${fill(this.words.way, { source, dest, label })}`;
  }

  showEdge(at) {
    const [source, , dest, label] = at ? this.row(at) : [this.words.start, "", "Deciding", ""];
    const parts = [make("span", "", source), make("span", "fsm-arrow", " → "), make("b", "", dest)];
    if (label) parts.push(make("span", "fsm-label", label));
    this.find("way").replaceChildren(...parts);
    const ms = at ? this.data.ms[at - 1] : null;
    const time = ms === null ? [] : [fill(this.words.seconds, { seconds: figure(ms / 1000) })];
    this.find("about").textContent = [this.place(at), ...time].join(" · ");
  }

  // All of this step so far. What came with the edge just taken is last.
  showItems(at) {
    const { items, steps, task } = this.data;
    const made = [];
    if (!at) made.push(this.item([-1, task, 0], false));
    for (let edge = at - 1; edge >= 0 && steps[edge] === steps[at - 1] && made.length < MANY; edge--) {
      const makers = (items[edge] || []).map((each) => () => this.item(each, edge === at - 1));
      made.unshift(...some(makers, this.words));
    }
    if (!made.length) made.push(make("p", "fsm-nothing", this.words.silent));
    this.find("items").replaceChildren(...made);
  }

  item([head, text, tone, note], now) {
    const article = make("article", `fsm-item fsm-${TONES[tone]}${now ? " fsm-now" : ""}`);
    const heading = make("p", "fsm-item-head");
    heading.append(named(head < 0 ? this.words.task : this.text(head)));
    if (now) heading.append(" ", make("span", "fsm-tag", this.words.now));
    if (note !== undefined) heading.append(" ", make("span", "fsm-note", this.text(note)));
    article.append(heading, told(this.text(text), this.words));
    return article;
  }

  showEnding(at) {
    const { ending, edges } = this.data;
    const box = this.find("ending");
    box.hidden = !ending || at < edges.length;
    if (box.hidden || box.hasChildNodes()) return;
    box.classList.toggle("fsm-answered", ending.answered);
    box.append(make("p", "fsm-reason", this.row(at)[2]), told(this.text(ending.message), this.words));
    if (ending.evidence.length) {
      const makers = ending.evidence.map((each) => () => this.evidence(each));
      const list = make("ul", "fsm-evidence");
      list.append(...some(makers, this.words, inLine));
      box.append(list);
    }
    if (this.text(ending.also)) box.append(make("p", "fsm-also", fill(this.words.also, { readings: this.text(ending.also) })));
  }

  evidence([step, kind, text]) {
    const line = make("li");
    line.append(make("b", "", fill(this.words.step, { step })), " ", make("span", "fsm-kind", this.text(kind)), told(this.text(text), this.words));
    return line;
  }

  // The last of them, made only when they are looked at. A summary is shown in place of the messages that it stands for.
  showMessages(at) {
    const [, from, to, head, text] = this.data.summaries.findLast(([edge]) => edge <= at) ?? [0, Infinity, Infinity];
    const hidden = from < Infinity ? to - from - 1 : 0;
    const count = this.data.messages[at] - hidden;
    const shown = (i) => (i < from ? this.message(this.data.history[i]) : i > from ? this.message(this.data.history[i + hidden]) : this.item([head, text, 0], false));
    this.find("number").textContent = grouped(count);
    if (!this.messages.open) return;
    const first = Math.max(count - MANY, 0);
    const made = Array.from({ length: count - first }, (_, i) => shown(first + i));
    if (first) {
      const all = () => button.replaceWith(...Array.from({ length: first }, (_, i) => shown(i)));
      const button = makeButton(fill(this.words.earlier, { n: grouped(first) }), all);
      made.unshift(button);
    }
    this.find("history").replaceChildren(...made);
  }

  message(places) {
    const [head, text, calls] = places.map((each) => this.text(each));
    const article = make("article", "fsm-item");
    const heading = make("p", "fsm-item-head");
    heading.append(named(head));
    article.append(heading);
    if (text || !calls) article.append(told(text, this.words));
    if (calls) article.append(told(calls, this.words));
    return article;
  }
}

const inLine = (element) => {
  const line = make("li");
  line.append(element);
  return line;
};
