// Mirror rules of a port: the VF that receives the copies, and the copied frames.

import { Editor } from "./editor.js";
import { labelled, select } from "./fields.js";
import { element } from "./view.js";

const RULES = ["0", "1", "2", "3"];
const WAYS = [["", "nothing"], ["ingress", "from it"], ["egress", "to it"], ["both", "both ways"]];

/** Returns a rule with the fields that the host omits. */
function whole(rule) {
  return rule ? { vfs: [], uplink: null, vlans: null, ...rule } : null;
}

export class Mirror extends Editor {
  draw({ settings, vfs }) {
    this.before = settings.mirror ?? {};
    return RULES.map((number) => this.rule(number, this.before[number] ?? {}, vfs));
  }

  rule(number, { to, vfs: of = [], uplink, vlans }, vfs) {
    const who = [["", "no VF: no rule"], ...vfs.map((vf) => [vf.index, vf.name])];
    const box = (vf) => {
      const input = element("input", { type: "checkbox", name: `${number}.vfs`, value: vf.index });
      input.checked = of.includes(vf.index);
      return element("label", {}, input, ` ${vf.name}`);
    };
    const text = element("input", { type: "text" });
    text.value = vlans ?? "";
    return element("fieldset", {}, element("legend", {}, `mirror rule ${number}`),
      labelled(this.form, `${number}.to`, "copies go to", select(who, to ?? ""), "The VF that receives them."),
      labelled(this.form, `${number}.uplink`, "of the uplink", select(WAYS, uplink ?? ""), "Frames from the uplink, or to it."),
      labelled(this.form, `${number}.vlans`, "of VLANs", text, "any, or ids and ranges as in 10,20-29; empty: none."),
      element("fieldset", { class: "all" }, element("legend", {}, "of what these receive"), ...vfs.map(box)));
  }

  said(number) {
    const { [`${number}.to`]: to, [`${number}.uplink`]: uplink, [`${number}.vlans`]: vlans } = this.form.elements;
    const of = this.form.querySelectorAll(`[name="${number}.vfs"]:checked`);
    return to.value === "" ? null
      : { to: Number(to.value), vfs: [...of].map((box) => Number(box.value)), uplink: uplink.value || null, vlans: vlans.value || null };
  }

  change() {
    const text = (rule) => JSON.stringify(Object.entries(whole(rule) ?? {}).sort());
    const changed = RULES.filter((number) => text(this.said(number)) !== text(this.before[number]));
    const set = { mirror: Object.fromEntries(changed.map((number) => [number, this.said(number)])) };
    return { names: changed.map((number) => `mirror rule ${number}`), set };
  }
}
