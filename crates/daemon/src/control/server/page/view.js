// Small parts of the page. Text from the host is only set as text, so that it cannot become markup.

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

/** Fills a table: names of columns, and rows whose first cell is their name. */
export function table(where, columns, rows) {
  const head = element("tr", {}, ...columns.map((column) => element("th", { scope: "col" }, column)));
  const line = ([name, ...cells]) =>
    element("tr", {}, element("th", { scope: "row" }, name), ...cells.map((cell) => element("td", {}, cell)));
  where.replaceChildren(element("thead", {}, head), element("tbody", {}, ...rows.map(line)));
}

/** Creates a line chart of one or more lines, between two times and from 0 to `top`. */
export function plot(lines, { start, end, top }) {
  const make = (name, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) {
      made.setAttribute(key, value);
    }
    return made;
  };
  const point = ({ time, value }) => `${(((time - start) / (end - start)) * 300).toFixed(1)},${(99 - (value / top) * 98).toFixed(1)}`;
  const path = (samples) => samples.map((sample, index) => (index && !sample.gap ? "L" : "M") + point(sample)).join("");
  const svg = make("svg", { viewBox: "0 0 300 100", preserveAspectRatio: "none", "aria-hidden": "true" });
  svg.append(...[1, 50, 99].map((y) => make("path", { class: "grid", d: `M0,${y}H300` })),
    ...lines.map((samples, index) => make("path", { class: `line${index}`, d: path(samples) })));
  return svg;
}

export function number(value = 0) {
  return value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0 });
}
