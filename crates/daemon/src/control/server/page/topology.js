// Ports with their uplinks, and VFs with their clients.

import { functions } from "./history.js";
import { element } from "./view.js";

function vf(vf) {
  const who = vf.peer ? `process ${vf.peer.pid}, user ${vf.peer.uid}` : "no client";
  const state = vf.active ? "driver runs" : vf.peer ? "no driver yet" : "free";
  const parts = [
    element("h3", {}, vf.name),
    element("p", { class: vf.link ? "good" : "faint" }, `link ${vf.link ? "up" : "down"}, ${state}`),
    element("p", {}, vf.mac),
    element("p", { class: "faint" }, who),
  ];
  if (vf.settings?.vlan) {
    parts.push(element("p", {}, `VLAN ${vf.settings.vlan}`));
  }
  for (const word of [vf.conduct?.quarantine && `quarantined: ${vf.conduct.quarantine}`, vf.conduct?.throttled && "slowed down", vf.hint]) {
    if (word) {
      parts.push(element("p", { class: "bad" }, word));
    }
  }
  return element("li", {}, ...parts);
}

export function topology(where, ports) {
  const port = (port) => {
    const words = `${port.mac}, link ${port.link ? "up" : "down"}, uplink ${port.uplink}`;
    return element("div", { class: port.link ? "port up" : "port" },
      element("h3", {}, port.name), element("p", {}, words), element("ul", { class: "vfs" }, ...functions([port]).map(vf)));
  };
  where.replaceChildren(...ports.map(port));
}
