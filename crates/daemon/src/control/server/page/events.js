// Events, the latest first.

import { element } from "./view.js";

const SHOWN = 200;

export function add(list, kind, event) {
  const item = kind === "lost" ? element("li", { class: "faint" }, `${event.lost} events before these are not kept any more`)
    : element("li", { class: event.level === "info" ? "" : "bad" },
      element("time", { datetime: event.time }, new Date(event.time).toLocaleTimeString()),
      `${event.about ? `${event.about}: ` : ""}${event.event}`,
      element("span", { class: "faint" }, Object.entries(event.fields ?? {}).map(([key, value]) => ` ${key}=${value}`).join("")));
  list.prepend(item);
  while (list.children.length > SHOWN) {
    list.lastChild.remove();
  }
}
