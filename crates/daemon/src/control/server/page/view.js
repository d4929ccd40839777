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

/** Creates a line chart of values over time. */
export function line(values) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  const most = Math.max(...values, 1);
  const at = (value, place) => `${place},${(20 - (value / most) * 18).toFixed(1)}`;
  path.setAttribute("d", values.length > 1 ? `M${values.map(at).join("L")}` : "");
  svg.setAttribute("viewBox", `0 0 ${Math.max(values.length - 1, 1)} 22`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("class", "line");
  svg.setAttribute("aria-hidden", "true");
  svg.append(path);
  return svg;
}

export function number(value) {
  return value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0 });
}
