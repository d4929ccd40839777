// Requests to the host. Over TCP they need a token, which this tab keeps.

const KEY = "softiov-token";

/** Problem that the host has reported. */
export class Problem extends Error {
  constructor(problem) {
    super(problem.detail ?? problem.title ?? "no answer");
    this.status = problem.status;
  }
}

export function keepToken(token) {
  sessionStorage.setItem(KEY, token);
}

function headers(more) {
  const token = sessionStorage.getItem(KEY);
  return token ? { ...more, Authorization: `Bearer ${token}` } : more;
}

async function fetched(path, options = {}) {
  const response = await fetch(path, { ...options, headers: headers(options.headers ?? {}) });
  if (!response.ok) {
    throw new Problem(await response.json().catch(() => ({ status: response.status })));
  }
  return response;
}

export async function get(path) {
  return (await fetched(path)).json();
}

export async function patch(path, body) {
  const options = { method: "PATCH", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  return (await fetched(path, options)).json();
}

/** Calls `take(bytes)` for each piece of a long response, until it ends, the time is over, or `take` returns false. */
export async function pieces(path, milliseconds, take) {
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(), milliseconds);
  try {
    const reader = (await fetched(path, { signal: over.signal })).body.getReader();
    for (;;) {
      const { value, done } = await reader.read();
      if (done || !take(value)) {
        return over.abort();
      }
    }
  } catch (problem) {
    if (!over.signal.aborted) {
      throw problem;
    }
  } finally {
    clearTimeout(timer);
  }
}

/** Calls `take(kind, data, id)` for each server-sent event after the one with the id `last`, until the connection ends. */
export async function stream(last, take) {
  const response = await fetched("/v1/events/stream", last ? { headers: { "Last-Event-ID": last } } : {});
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) {
      return;
    }
    text += value;
    const events = text.split("\n\n");
    text = events.pop();
    for (const event of events) {
      const fields = Object.fromEntries(event.split("\n").map((line) => line.split(/: (.*)/s)));
      if (fields.data) {
        take(fields.event, JSON.parse(fields.data), fields.id);
      }
    }
  }
}
