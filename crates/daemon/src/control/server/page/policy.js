// Settings of a VF, as the host's own description of its interface has them: a field for each, and one change for all.

import { get, patch } from "./api.js";
import { element } from "./view.js";

let schemas;

/** The schema behind references and "or nothing". */
function resolved(schema) {
  const one = schema.anyOf?.find((any) => any.type !== "null") ?? schema;
  return one.$ref ? { ...schemas[one.$ref.split("/").pop()], description: schema.description } : { ...schema, ...one };
}

function field(name, schema, value) {
  const { type, oneOf, enum: words, description } = resolved(schema);
  const choices = words ?? oneOf?.map((one) => one.const);
  const is = (kind) => type === kind || type?.includes(kind);
  let input;
  if (choices) {
    input = element("select", { name }, ...choices.map((choice) => element("option", {}, choice)));
    input.value = value;
  } else if (is("boolean")) {
    input = element("input", { name, type: "checkbox" });
    input.checked = value;
  } else {
    input = element("input", is("integer") ? { name, type: "number", min: 0 } : { name, type: "text" });
    input.value = value ?? "";
  }
  const help = element("small", { id: `help-${name}` }, description ?? "");
  input.setAttribute("aria-describedby", help.id);
  return element("div", {}, element("label", {}, `${name} `, input), help);
}

function said(input) {
  if (input.type === "checkbox") {
    return input.checked;
  }
  return input.type === "number" ? Number(input.value) : input.value;
}

export class Policy {
  constructor(chosen, form, outcome) {
    Object.assign(this, { chosen, form, outcome, settings: {} });
    chosen.addEventListener("change", () => this.show());
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.set();
    });
  }

  /** Offers these VFs. What somebody is about to change stays as it is. */
  async offer(vfs) {
    const names = vfs.map((vf) => vf.name);
    if (names.join() === [...this.chosen.options].map((option) => option.value).join()) {
      return;
    }
    const before = this.chosen.value;
    this.chosen.replaceChildren(...names.map((name) => element("option", {}, name)));
    this.chosen.value = names.includes(before) ? before : names[0] ?? "";
    await this.show();
  }

  async show() {
    schemas ??= (await get("/v1/openapi.json")).components.schemas;
    this.outcome.textContent = "";
    if (!this.chosen.value) {
      return this.form.replaceChildren();
    }
    const { settings } = await get(`/v1/vfs/${encodeURIComponent(this.chosen.value)}`);
    this.settings = settings;
    const known = Object.entries(schemas.VfSettings.properties).filter(([name]) => name in settings);
    const fields = known.map(([name, schema]) => field(name, schema, settings[name]));
    const ends = element("label", {}, element("input", { type: "checkbox", name: ":volatile" }), " only until the host ends");
    this.form.replaceChildren(...fields, element("div", { class: "all" }, element("button", {}, "Set"), ends));
  }

  async set() {
    const inputs = [...this.form.elements].filter((input) => input.name in this.settings);
    const changed = inputs.filter((input) => said(input) !== this.settings[input.name]);
    const set = Object.fromEntries(changed.map((input) => [input.name, said(input)]));
    const name = this.chosen.value;
    try {
      await patch(`/v1/vfs/${encodeURIComponent(name)}`, { set, volatile: this.form.elements[":volatile"].checked });
      await this.show();
      this.tell("good", Object.keys(set).length ? `${name}: ${Object.keys(set).join(", ")} set` : "nothing differs");
    } catch (problem) {
      this.tell("bad", problem.message);
    }
  }

  tell(kind, text) {
    this.outcome.className = kind;
    this.outcome.textContent = text;
  }
}
