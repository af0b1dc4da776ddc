// Putting text on the page. Whatever a model, a tool or a file said gets there as a text node, by `make`, and no other way.

const SHOWN = 4000; // characters of a text that are shown at first
const MANY = 40; // things that are shown at first
const CHUNK = 20000; // characters in one block of a text that is shown in full

const make = (tag, name, text) => {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = text;
  return element;
};

const makeButton = (text, does) => {
  const button = make("button", "fsm-more", text);
  button.type = "button";
  button.addEventListener("click", does);
  return button;
};

const fill = (sentence, fields) => sentence.replace(/\{(\w+)\}/g, (found, name) => String(fields[name] ?? found));
const grouped = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ",");
const figure = (value) => (typeof value !== "number" || Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(4))));

// A column that holds what is added each time, as the sums; what is not known stays so.
const summed = (column) => {
  let sum = 0;
  return column.map((added) => (added === null ? null : (sum += added)));
};

// The first characters of a text, but not half of one that is made of two.
const cut = (text, length) => text.slice(0, /[\ud800-\udbff]/.test(text[length - 1]) ? length - 1 : length);

// A name in a line of its own direction.
const named = (text) => make("bdi", "", text.length > 200 ? `${cut(text, 200)}…` : text);

// A long text in blocks that the browser lays out only when they are seen. Each ends at a line break where there is one.
const blocks = (text) => {
  const made = [];
  for (let from = 0; from < text.length; ) {
    let to = Math.min(from + CHUNK, text.length);
    if (to < text.length) {
      const line = text.lastIndexOf("\n", to - 1);
      to = line > from ? line + 1 : from + cut(text.slice(from, to), to - from).length;
    }
    made.push(make("div", "fsm-block", text.slice(from, to)));
    from = to;
  }
  return made;
};

// A text of any length: its beginning, and a button for all of it.
const told = (text, words) => {
  if (!text) return make("p", "fsm-nothing", words.nothing);
  const body = make("div", "fsm-text");
  body.dir = "auto";
  if (text.length <= SHOWN) {
    body.textContent = text;
    return body;
  }
  const both = make("div");
  const button = makeButton("", () => {
    show(button.getAttribute("aria-expanded") === "false");
    button.focus({ preventScroll: true });
  });
  const show = (all) => {
    button.textContent = all ? words.less : fill(words.more, { n: grouped(text.length) });
    button.setAttribute("aria-expanded", String(all));
    if (all) body.replaceChildren(...blocks(text));
    else body.textContent = `${cut(text, SHOWN)}…`;
    both.replaceChildren(...(all ? [button, body] : [body, button]));
  };
  show(false);
  return both;
};

// Of many things the first, and a button that makes the others.
const some = (makers, words, around = (button) => button) => {
  const made = makers.slice(0, MANY).map((each) => each());
  if (makers.length > MANY) {
    const rest = around(makeButton(fill(words.all, { n: grouped(makers.length) }), () => rest.replaceWith(...makers.slice(MANY).map((each) => each()))));
    made.push(rest);
  }
  return made;
};
