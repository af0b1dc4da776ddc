"use strict";
// Searching and sorting the list of runs, and opening those that are linked to. The page is whole without it.
(() => {
  const table = document.getElementById("runs");
  if (table) {
    const body = table.tBodies[0];
    const rows = Array.from(body.rows);
    const texts = rows.map((row) => row.textContent.toLowerCase());
    const heads = Array.from(table.tHead.rows[0].cells);
    const search = document.getElementById("search");
    const count = document.getElementById("count");
    const tell = (shown) => {
      count.textContent = count.dataset.text.replace("{shown}", shown).replace("{n}", rows.length);
    };
    const find = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      rows.forEach((row, i) => {
        row.hidden = !words.every((word) => texts[i].includes(word));
        shown += row.hidden ? 0 : 1;
      });
      tell(shown);
    };
    const sort = (column) => {
      const head = heads[column];
      const number = head.classList.contains("n");
      const before = head.getAttribute("aria-sort") || (number ? "ascending" : "descending"); // numbers begin with the highest
      const down = before === "ascending";
      const key = (row) => (number ? Number(row.cells[column].textContent) : row.cells[column].textContent);
      const keyed = rows.map((row, i) => [key(row), i, row]);
      const compare = number ? (a, b) => a - b : new Intl.Collator(undefined, { numeric: true }).compare;
      keyed.sort((a, b) => (down ? compare(b[0], a[0]) : compare(a[0], b[0])) || a[1] - b[1]);
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...keyed.map((each) => each[2]));
    };
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      button.addEventListener("click", () => sort(column));
      head.append(button);
    });
    search.addEventListener("input", find);
    document.getElementById("finder").hidden = false;
    tell(rows.length);
  }
  // Players wait in templates, and their script in one too: they cost nothing until a run is opened for the first time.
  const start = () => {
    for (const each of document.querySelectorAll("template.player")) {
      each.replaceWith(each.content);
    }
    document.getElementById("play")?.replaceWith(document.getElementById("play").content);
  };
  document.addEventListener("toggle", (event) => event.target.matches(".run[open]") && start(), true);
  // What the address names is opened: a run, or the run of a player that is to be at an edge, as in #play-3=12.
  const open = () => {
    const name = location.hash.slice(1).split("=")[0];
    if (/^play-\d+$/.test(name)) {
      start();
    }
    const target = document.getElementById(name);
    const run = target?.closest("details");
    if (run) {
      run.open = true;
      target.scrollIntoView();
    }
  };
  window.addEventListener("hashchange", open);
  open();
})();
