// Tables of each function: traffic and VMM interventions per second, and dropped frames.

import { functions } from "./history.js";
import { element, number, plot, table } from "./view.js";

export function rates(where, ports, history) {
  const rows = functions(ports).map(({ name }) => {
    const { received, receivedMegabits, sent, sentMegabits, dropped } = history.latest(name);
    const line = history.line("megabits", name);
    const top = Math.max(1, ...line.map(({ value }) => value));
    const picture = plot([line], { ...history.span(), top });
    return [name, ...[received, receivedMegabits, sent, sentMegabits, dropped].map(number), picture];
  });
  table(where, ["", "received, frames/s", "Mb/s", "sent, frames/s", "Mb/s", "dropped/s", "last minutes"], rows);
}

export function drops(where, ports) {
  const all = functions(ports);
  const reasons = Object.keys(all[0]?.drops ?? {});
  const rows = all.map((vf) => [vf.name, ...reasons.map((reason) => {
    const lost = vf.drops[reason];
    return element("span", { class: lost ? "bad" : "faint" }, number(lost));
  })]);
  table(where, ["", ...reasons.map((reason) => reason.replaceAll("_", " "))], rows);
}

export function interventions(where, ports, history) {
  const all = functions(ports);
  const kinds = Object.keys(all[0]?.interventions ?? {});
  const rows = all.map(({ name }) => [name, ...kinds.map((kind) => number(history.latest(name)[kind]))]);
  table(where, ["", ...kinds.map((kind) => kind.replaceAll("_", " "))], rows);
}
