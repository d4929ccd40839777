// Form that changes a port or a VF: the selection, the fields, and the outcome.

import { get, patch } from "./api.js";
import { element } from "./view.js";

export class Editor {
  /** `path` is the path of the ports or VFs. `draw(status)` returns the form's fields, and `change()` the changed settings. */
  constructor(path, chosen, form, outcome) {
    Object.assign(this, { path, chosen, form, outcome });
    chosen.addEventListener("change", () => this.show());
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.set();
    });
  }

  /** Lists these names. A form with unsaved changes stays, unless `of`, the other data that the form depends on, differs. */
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
    // If another name was selected meanwhile, only its own response is drawn.
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
