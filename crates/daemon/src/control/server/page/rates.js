// Traffic, losses and VMM interventions of each function, per second.

import { element, line, number, table } from "./view.js";

const KEPT = 60;
const histories = new Map();

export function functions(ports) {
  return ports.flatMap((port) => (port.pf ? [{ ...port.pf, name: port.name }] : port.vfs));
}

function change(now, before, seconds) {
  return Math.max(0, (now - (before ?? now)) / seconds);
}

export function rates(where, ports, before, seconds) {
  const rows = functions(ports).map((vf) => {
    const old = before.get(vf.name);
    const rate = (direction, key) => change(vf[direction][key], old?.[direction][key], seconds);
    const history = histories.get(vf.name) ?? [];
    history.push(rate("rx", "bytes") + rate("tx", "bytes"));
    histories.set(vf.name, history.slice(-KEPT));
    const megabits = (direction) => number((rate(direction, "bytes") * 8) / 1e6);
    return [vf.name, number(rate("rx", "packets")), megabits("rx"), number(rate("tx", "packets")), megabits("tx"),
      number(rate("rx", "dropped") + rate("tx", "dropped")), line(histories.get(vf.name))];
  });
  table(where, ["", "received, frames/s", "Mb/s", "sent, frames/s", "Mb/s", "lost/s", "last minute"], rows);
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

export function interventions(where, ports, before, seconds) {
  const all = functions(ports);
  const kinds = Object.keys(all[0]?.interventions ?? {});
  const rows = all.map((vf) => {
    const old = before.get(vf.name)?.interventions;
    return [vf.name, ...kinds.map((kind) => number(change(vf.interventions[kind], old?.[kind], seconds)))];
  });
  table(where, ["", ...kinds.map((kind) => kind.replaceAll("_", " "))], rows);
}
