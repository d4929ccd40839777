// State at a glance: ports, functions, present traffic, and trouble.

import { functions } from "./history.js";
import { element, number } from "./view.js";

/** Number of troubles that are listed. */
const LISTED = 8;

/** Returns the problem's name and text for every port and function that does not work as its owner expects. */
export function troubles(ports, history) {
  const found = [];
  for (const port of ports) {
    if (port.uplink_status && port.uplink_status.state !== "up") {
      found.push([port.name, `uplink ${port.uplink_status.name} is ${port.uplink_status.state}`]);
    }
    if (!port.link) {
      found.push([port.name, "link down"]);
    }
  }
  for (const vf of functions(ports)) {
    const { conduct, settings } = vf;
    const dropped = [...history.drops(vf.name)].map(([reason, frames]) => `${number(frames)} ${reason.replaceAll("_", " ")}`);
    const words = [
      conduct?.quarantine && `quarantined: ${conduct.quarantine}`,
      conduct?.throttled && "slowed down",
      vf.peer && !vf.link && !conduct?.quarantine && `link down${settings?.state === "disable" ? " by policy" : ""}`,
      vf.hint,
      dropped.length && `frames dropped in the last minute: ${dropped.join(", ")}`,
    ];
    found.push(...words.filter(Boolean).map((text) => [vf.name, text]));
  }
  return found;
}

function tile(title, value, kind, ...details) {
  return element("div", { class: "tile" }, element("h2", {}, title), element("p", { class: `value ${kind}` }, value), ...details);
}

function detail(text) {
  return element("p", { class: "faint" }, text);
}

function count(all, is) {
  return all.filter(is).length;
}

/** Shows the state, and returns the number of troubles. */
export function glance(where, ports, history) {
  const vfs = functions(ports);
  const found = troubles(ports, history);
  const { receivedMegabits = 0, sentMegabits = 0, received = 0, sent = 0 } = history.latest();
  const portsUp = count(ports, (port) => port.link);
  const vfsUp = count(vfs, (vf) => vf.link);
  const listed = found.slice(0, LISTED).map(([name, text]) => element("li", {}, element("b", {}, name), ` ${text}`));
  if (found.length > LISTED) {
    listed.push(element("li", {}, `and ${found.length - LISTED} more`));
  }
  where.replaceChildren(
    tile("Ports", `${portsUp} of ${ports.length} up`, portsUp < ports.length ? "bad" : "",
      detail(ports.map((port) => port.name).join(", "))),
    tile(ports.some((port) => port.pf) ? "Functions" : "VFs", `${count(vfs, (vf) => vf.peer && vf.active)} of ${vfs.length} in use`, "",
      detail(`links: ${vfsUp} up, ${vfs.length - vfsUp} down`), detail(`${count(vfs, (vf) => vf.peer)} with a client`)),
    tile("Traffic now", `${number(receivedMegabits)} Mb/s`, "", detail(`to guests, ${number(received)} frames/s`),
      detail(`from guests ${number(sentMegabits)} Mb/s, ${number(sent)} frames/s`)),
    tile("Trouble", found.length ? number(found.length) : "none", found.length ? "bad" : "good", element("ul", {}, ...listed)),
  );
  return found.length;
}
