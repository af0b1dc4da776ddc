// Steps through runs. Nothing is made for edges that are not looked at, so a long run costs no more than a short one.

const SETTLED_MS = 200; // after the last edge, until the address and the screen reader are told

class Player {
  constructor(root) {
    this.root = root;
    this.data = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
    for (const name of ["steps", "ms", "messages"]) this.data[name] = summed(this.data[name]);
    this.words = this.data.words;
    this.last = this.data.edges.length;
    this.slider = root.querySelector(".fsm-slider");
    this.speed = root.querySelector("select");
    this.help = root.querySelector("dialog");
    this.said = new Said(root, this.data);
    this.parts = [new Picture(root, this.data), this.said, new Gauges(root, this.data)];
    this.at = Math.min(this.fromAddress() ?? 0, this.last); // edges taken so far
    this.listen();
    this.draw();
  }

  draw() {
    this.drawn = this.at;
    for (const part of this.parts) part.show(this.at);
    this.slider.value = String(this.at);
    this.slider.setAttribute("aria-valuetext", this.said.place(this.at));
    this.root.querySelector(".fsm-place").textContent = `${this.at} / ${this.last}`;
  }

  // --- moving ---------------------------------------------------------------------------------------------------------

  // Once a frame is drawn, however often it is called: keys that are held down never lag behind.
  go(position) {
    this.at = Math.min(Math.max(position, 0), this.last);
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      if (this.drawn !== this.at) this.draw();
    });
    clearTimeout(this.settling);
    this.settling = setTimeout(() => this.settle(), SETTLED_MS);
  }

  settle() {
    this.toAddress();
    this.root.querySelector(".fsm-live").textContent = this.said.spoken(this.at);
  }

  // To the end of this step or of one before: where the model is about to be asked, or the run has halted.
  goStep(direction) {
    let at = this.at;
    do at += direction;
    while (at > 0 && at < this.last && this.said.row(at)[1] !== "Deciding");
    this.go(at);
  }

  toggle() {
    if (this.timer) {
      this.stop();
      return;
    }
    if (this.at === this.last) this.go(0);
    this.wait();
    this.showPlaying();
  }

  wait() {
    this.timer = setTimeout(() => {
      this.go(this.at + 1);
      if (this.at === this.last) this.stop();
      else this.wait();
    }, 1000 / Number(this.speed.value));
  }

  stop() {
    clearTimeout(this.timer);
    this.timer = null;
    this.showPlaying();
  }

  showPlaying() {
    const playing = Boolean(this.timer);
    this.root.classList.toggle("fsm-playing", playing);
    this.root.querySelector(".fsm-play").setAttribute("aria-label", playing ? this.words.pause : this.words.play);
  }

  changeSpeed(by) {
    const { options, selectedIndex } = this.speed;
    this.speed.selectedIndex = Math.min(Math.max(selectedIndex + by, 0), options.length - 1);
  }

  // --- the address: #run=12 is edge 12 of the player whose id is `run` --------------------------------------------------

  fromAddress() {
    const value = new URLSearchParams(location.hash.slice(1)).get(this.root.id);
    return value !== null && /^\d{1,9}$/.test(value) ? Number(value) : null;
  }

  toAddress() {
    const others = location.hash.slice(1).split("&").filter((part) => part.includes("=") && !part.startsWith(`${this.root.id}=`));
    if (this.fromAddress() !== this.at) history.replaceState(null, "", `#${[...others, `${this.root.id}=${this.at}`].join("&")}`);
  }

  // --- buttons, slider and keys -----------------------------------------------------------------------------------------

  listen() {
    const does = {
      first: () => this.go(0),
      back: () => this.go(this.at - 1),
      next: () => this.go(this.at + 1),
      last: () => this.go(this.last),
      play: () => this.toggle(),
      help: () => this.help.showModal(),
    };
    for (const button of this.root.querySelectorAll("[data-go]")) {
      button.addEventListener("click", () => {
        if (button.dataset.go !== "play") this.stop();
        does[button.dataset.go]();
      });
    }
    this.slider.addEventListener("input", () => {
      this.stop();
      this.go(Number(this.slider.value));
    });
  }

  // Gives whether the key is one of the player's.
  press(event) {
    const on = event.target instanceof Element ? event.target : document.body;
    const isPressed = on.closest("button, summary, a") && (event.key === " " || event.key === "Enter");
    if (this.help.open || isPressed || on.closest("select, textarea, input:not([type=range]), [contenteditable]")) return false;
    const moves = {
      ArrowRight: () => (event.shiftKey ? this.goStep(1) : this.go(this.at + 1)),
      ArrowLeft: () => (event.shiftKey ? this.goStep(-1) : this.go(this.at - 1)),
      Home: () => this.go(0),
      End: () => this.go(this.last),
    };
    const others = {
      " ": () => this.toggle(),
      "+": () => this.changeSpeed(1),
      "=": () => this.changeSpeed(1),
      "-": () => this.changeSpeed(-1),
      "?": () => this.help.showModal(),
    };
    if (Object.hasOwn(moves, event.key)) {
      this.stop();
      moves[event.key]();
      return true;
    }
    if (!Object.hasOwn(others, event.key)) return false;
    others[event.key]();
    return true;
  }
}

const players = [...document.querySelectorAll(".fsm-player")].map((root) => new Player(root));

// On a page of others, keys are for the player that has the focus.
document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey) return;
  const whole = players.find((each) => each.root.querySelector("h1.fsm-title")); // the page is this player
  const player = whole ?? players.find((each) => each.root.contains(event.target));
  if (player && player.press(event)) event.preventDefault();
});

addEventListener("hashchange", () => {
  for (const player of players) player.go(player.fromAddress() ?? player.at);
});
