// Settings of a VF or of a port: a field for each, grouped by kind, and one change for all.

import { Editor } from "./editor.js";
import { field, leaves, said, schema } from "./fields.js";
import { element } from "./view.js";

export class Policy extends Editor {
  /** `type` is the type of the settings in the host's description; `except` lists settings that have a form of their own. */
  constructor(path, type, except, ...parts) {
    super(path, ...parts);
    Object.assign(this, { type, except, before: new Map() });
  }

  async draw({ settings }) {
    const known = leaves(await schema(this.type), settings).filter(([names]) => !this.except.includes(names[0]));
    this.before = new Map(known.map(([names, , value]) => [names.join("."), value]));
    const groups = Map.groupBy(known, ([names]) => names.slice(0, -1).join(": "));
    return [...groups].flatMap(([group, members]) => {
      const fields = members.map((member) => field(this.form, ...member));
      return group ? [element("fieldset", {}, element("legend", {}, group), ...fields)] : fields;
    });
  }

  change() {
    const inputs = [...this.form.elements].filter((input) => this.before.has(input.name));
    const changed = inputs.filter((input) => `${said(input)}` !== `${this.before.get(input.name)}`);
    const set = {};
    for (const input of changed) {
      const names = input.name.split(".");
      const last = names.pop();
      names.reduce((inner, name) => (inner[name] ??= {}), set)[last] = said(input);
    }
    return { names: changed.map((input) => input.name), set };
  }
}
