// Capture of a port's frames for some seconds, which the browser saves as a file.

import { pieces } from "./api.js";
import { element } from "./view.js";

/** Bytes after which a tab ends the capture, because it keeps them in memory. */
const MOST = 64 * 1024 * 1024;

export class Capture {
  constructor(form, outcome) {
    Object.assign(this, { form, outcome, port: {} });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.run();
    });
  }

  /** Lists ports and their VFs in the form. */
  offer(ports) {
    this.port = Object.fromEntries(ports.flatMap((port) => [port, ...port.vfs].map(({ name }) => [name, port.name])));
    const names = Object.keys(this.port);
    const { at } = this.form.elements;
    if (names.join() !== [...at.options].map((option) => option.value).join()) {
      at.replaceChildren(...names.map((name) => element("option", {}, name)));
    }
  }

  async run() {
    const { at, filter, drops, seconds, begin } = this.form.elements;
    const name = at.value;
    const query = new URLSearchParams({ filter: filter.value, drops: drops.checked });
    if (this.port[name] !== name) {
      query.set("at", name);
    }
    const taken = [];
    let bytes = 0;
    begin.disabled = true;
    try {
      await pieces(`/v1/ports/${encodeURIComponent(this.port[name])}/capture?${query}`, seconds.value * 1000, (piece) => {
        taken.push(piece);
        bytes += piece.length;
        this.tell("", `${bytes} bytes`);
        return bytes < MOST;
      });
      this.save(`${name}.pcapng`, new Blob(taken, { type: "application/x-pcapng" }));
    } catch (problem) {
      this.tell("bad", problem.message);
    }
    begin.disabled = false;
  }

  save(file, blob) {
    const link = element("a", { href: URL.createObjectURL(blob), download: file });
    link.click();
    URL.revokeObjectURL(link.href);
    this.tell("good", `${file}: ${blob.size} bytes`);
  }

  tell(kind, text) {
    this.outcome.className = kind;
    this.outcome.textContent = text;
  }
}
