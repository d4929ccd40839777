// Charts of the last minutes, of all functions together.

import { element, number, plot } from "./view.js";

/** Title, unit, and lines (name and rate) of each chart. */
const CHARTS = [
  ["Throughput", "Mb/s", [["to guests", "receivedMegabits"], ["from guests", "sentMegabits"]]],
  ["Frames", "frames/s", [["to guests", "received"], ["from guests", "sent"]]],
  ["Dropped frames", "frames/s", [["dropped", "dropped"]]],
  ["Work for the VMM", "a second", [["register accesses and interrupts", "work"]]],
];

/** Returns the smallest of 1, 2, 5, 10, 20 and so on that is not below a value. */
function above(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 2, 5, 10].map((step) => step * power).find((bound) => bound >= value);
}

export function charts(where, history) {
  const { minutes, ...span } = history.span();
  const ago = minutes === 1 ? "1 minute" : `${minutes} minutes`;
  where.replaceChildren(...CHARTS.map(([title, unit, lines]) => {
    const drawn = lines.map(([, key]) => history.line(key));
    const most = Math.max(0, ...drawn.flat().map(({ value }) => value));
    const top = above(most);
    const now = lines.map(([name], index) => `${name} ${number(drawn[index].at(-1)?.value)}`);
    const legend = now.map((text, index) => element("span", { class: `legend line${index}` }, text));
    const picture = plot(drawn, { ...span, top });
    const told = `${title}, ${unit}: ${now.join(", ")}; at most ${number(most)} within ${ago}`;
    return element("figure", {},
      element("figcaption", {}, element("h3", {}, title), element("span", { class: "faint" }, unit), ...legend),
      element("div", { class: "plot", role: "img", "aria-label": told }, element("span", { class: "top" }, number(top)), picture),
      element("div", { class: "ends faint", "aria-hidden": "true" },
        element("span", {}, `${ago} ago`), element("span", {}, "now")));
  }));
}
