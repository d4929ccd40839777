// A form that changes something of the host's by name: what is chosen, what is set, and what came of it.

import { get, patch } from "./api.js";
import { element } from "./view.js";

export class Editor {
  /** `path` is where the named things are; `draw(status)` gives the form's fields, `change()` what is to be set. */
  constructor(path, chosen, form, outcome) {
    Object.assign(this, { path, chosen, form, outcome });
    chosen.addEventListener("change", () => this.show());
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.set();
    });
  }

  /** Offers these names. What somebody is about to change stays as it is, unless `of`, what else the form is made of, differs. */
  async offer(names, of = "") {
    const offered = [...names, of].join();
    if (offered === this.offered) {
      return;
    }
    const before = this.chosen.value;
    if (names.join() !== [...this.chosen.options].map((option) => option.value).join()) {
      this.chosen.replaceChildren(...names.map((name) => element("option", {}, name)));
      this.chosen.value = names.includes(before) ? before : names[0] ?? "";
    }
    await this.show();
    this.offered = offered;
  }

  where() {
    return `${this.path}/${encodeURIComponent(this.chosen.value)}`;
  }

  async show() {
    this.outcome.textContent = "";
    const name = this.chosen.value;
    if (!name) {
      this.form.replaceChildren();
      return;
    }
    // If another name is chosen meanwhile, its own answer is drawn.
    const told = await get(this.where());
    if (name !== this.chosen.value) {
      return;
    }
    const fields = await this.draw(told);
    if (name !== this.chosen.value) {
      return;
    }
    const ends = element("label", {}, element("input", { type: "checkbox", name: ":volatile" }), " only until the host ends");
    this.form.replaceChildren(...fields, element("div", { class: "all" }, element("button", {}, "Set"), ends));
  }

  async set() {
    const { names, set } = this.change();
    const name = this.chosen.value;
    try {
      await patch(this.where(), { set, volatile: this.form.elements[":volatile"].checked });
      await this.show();
      this.tell("good", names.length ? `${name}: ${names.join(", ")} set` : "nothing differs");
    } catch (problem) {
      this.tell("bad", problem.message);
    }
  }

  tell(kind, text) {
    this.outcome.className = kind;
    this.outcome.textContent = text;
  }
}
