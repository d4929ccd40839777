// Fields for settings, generated from the host's description of its interface.

import { get } from "./api.js";
import { element } from "./view.js";

let schemas;

/** Returns the schema of a type. */
export async function schema(name) {
  schemas ??= (await get("/v1/openapi.json")).components.schemas;
  return schemas[name];
}

/** Resolves references and "or null" in a schema. */
function resolved(schema) {
  const one = schema.anyOf?.find((any) => any.type !== "null") ?? schema;
  return one.$ref ? { ...schemas[one.$ref.split("/").pop()], description: schema.description } : { ...schema, ...one };
}

/** Returns each setting that has a value: its names from the outermost, its schema and its value. */
export function leaves(schema, values) {
  const { properties, additionalProperties } = resolved(schema);
  const known = properties ? Object.entries(properties) : Object.keys(values).map((name) => [name, additionalProperties]);
  return known.filter(([name]) => name in values).flatMap(([name, inner]) => {
    const value = values[name];
    const within = value && typeof value === "object" && !Array.isArray(value) ? leaves(inner, value) : [[[], inner, value]];
    return within.map(([names, ...rest]) => [[name, ...names], ...rest]);
  });
}

/** Creates an input with a label and a description. `name` is the name of the input in its form. */
export function labelled(form, name, label, input, help) {
  const small = element("small", { id: `help-${form.id}-${name}` }, help);
  input.name = name;
  input.setAttribute("aria-describedby", small.id);
  return element("div", {}, element("label", {}, `${label} `, input), small);
}

export function select(choices, value) {
  const made = element("select", {}, ...choices.map(([value, text]) => element("option", { value }, text)));
  made.value = value;
  return made;
}

/** Creates a field for a setting. */
export function field(form, names, schema, value) {
  const { type, oneOf, enum: words, description } = resolved(schema);
  const choices = words ?? oneOf?.map((one) => one.const);
  const is = (kind) => type === kind || type?.includes(kind);
  let input;
  if (choices) {
    input = select(choices.map((choice) => [choice, choice]), value);
  } else if (is("boolean")) {
    input = element("input", { type: "checkbox" });
    input.checked = value;
  } else {
    input = element("input", is("integer") ? { type: "number", min: 0 } : { type: "text" });
    // An empty field is not the number 0, which often means "no limit".
    input.required = is("integer") && !is("null");
    input.value = value ?? "";
    if (is("array")) {
      input.dataset.list = "";
    }
  }
  return labelled(form, names.join("."), names.at(-1), input, description ?? "");
}

/** Returns the value of an input. */
export function said(input) {
  if (input.type === "checkbox") {
    return input.checked;
  }
  if (input.type === "number") {
    return input.value === "" ? null : Number(input.value);
  }
  if ("list" in input.dataset) {
    return input.value.split(",").map((one) => one.trim()).filter(Boolean);
  }
  return input.value;
}
