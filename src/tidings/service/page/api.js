// The HTTP API of the service: the only thing that the page talks to.

import { capitalized } from "./format.js";

const SLOWEST_RETRY_MS = 10_000;

/** An answer that is an error, as problem details (RFC 9457). */
export class Problem extends Error {
  constructor(status, form) {
    super(capitalized(form.detail ?? `the service answers with status ${status}`));
    this.status = status;
    this.pointer = form.pointer ?? null;
    this.position = form.position ?? null;
  }
}

/** A request without an answer: the service, or the way to it, is away. */
export class Unreachable extends Error {
  constructor() {
    super("The service cannot be reached.");
  }
}

/** Calls with a bearer token; without one if `token` is null. Parameters that are null are left out. */
export class Api {
  constructor(token, onUnauthorized) {
    this.token = token;
    this.onUnauthorized = onUnauthorized;
  }

  get(path, parameters = {}, signal = undefined) {
    return this.call("GET", path, { parameters, signal });
  }

  post(path, body, signal = undefined) {
    return this.call("POST", path, { body, signal });
  }

  put(path, body, parameters = {}) {
    return this.call("PUT", path, { body, parameters });
  }

  delete(path, parameters = {}) {
    return this.call("DELETE", path, { parameters });
  }

  async call(method, path, { parameters = {}, body, signal, headers = {} } = {}) {
    const response = await this.send(method, path, { parameters, body, signal, headers });
    return response.json();
  }

  /** Send a request; return the response, or throw a `Problem`, or that it is `Unreachable`. */
  async send(method, path, { parameters = {}, body, signal, headers = {} } = {}) {
    const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined);
    const query = new URLSearchParams(given).toString();
    const response = await fetch(query ? `${path}?${query}` : path, {
      method,
      signal,
      headers: {
        ...this.authorization(),
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
        ...headers,
      },
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
      credentials: "omit",
    }).catch((error) => {
      throw signal?.aborted ? error : new Unreachable();
    });
    if (response.ok) return response;
    const form = await response.json().catch(() => ({}));
    if (response.status === 401) this.onUnauthorized?.();
    throw new Problem(response.status, form);
  }

  authorization() {
    return this.token === null ? {} : { Authorization: `Bearer ${this.token}` };
  }

  /**
   * Follow server-sent events until the signal is aborted: `onEvent(data)` for each, and
   * `onState("live" | "waiting")`. A lost connection is made again, after pauses that double, and
   * resumes after the last event. (EventSource cannot send a token.)
   */
  async follow(path, after, { onEvent, onState, signal }) {
    let last = after;
    let pause = 500;
    while (!signal.aborted) {
      try {
        const headers = { Accept: "text/event-stream", "Last-Event-ID": String(last) };
        const response = await this.send("GET", path, { headers, signal });
        onState("live");
        pause = 500;
        for await (const { id, data } of events(response.body)) {
          if (id !== null) last = id;
          if (data) onEvent(JSON.parse(data));
        }
      } catch (error) {
        if (signal.aborted || [401, 403, 404].includes(error.status)) return;
      }
      if (signal.aborted) return;
      onState("waiting");
      await sleep(pause * (0.75 + Math.random() / 2), signal);
      pause = Math.min(2 * pause, SLOWEST_RETRY_MS);
    }
  }
}

/** Return a path whose parts are escaped: `` path`/v1/feeds/${name}` ``. */
export function path(texts, ...parts) {
  return String.raw({ raw: texts }, ...parts.map(encodeURIComponent));
}

async function* events(stream) {
  let text = "";
  let id = null;
  let data = [];
  for await (const chunk of decoded(stream)) {
    text += chunk;
    const lines = text.split("\n");
    text = lines.pop();
    for (const line of lines) {
      if (line === "") {
        yield { id, data: data.join("\n") };
        data = [];
      } else if (line.startsWith("id:")) id = line.slice(3).trim();
      else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
    }
  }
}

async function* decoded(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}

function sleep(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
