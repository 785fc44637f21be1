// The HTTP API, drawn from /openapi.json: what each path takes and answers, and how to call it.

import { h, put } from "./dom.js";
import { capitalized } from "./format.js";

const METHODS = { get: "good", post: "warm", put: "warm", delete: "bad" };
const SAMPLES = { string: "…", integer: 1, number: 0.5, boolean: true, array: [], object: {} };
const main = document.getElementById("main");

/** Return a schema in words, with links to the schemas that it names. */
function typeOf(schema) {
  if (!schema) return [];
  if (schema.$ref) return [h("a", { href: `#${nameOf(schema)}` }, nameOf(schema))];
  const options = schema.anyOf ?? schema.oneOf;
  if (options) return options.flatMap((each, place) => (place ? [" or ", ...typeOf(each)] : typeOf(each)));
  if (schema.enum) return [schema.enum.map((value) => JSON.stringify(value)).join(", ")];
  if (schema.const !== undefined) return [JSON.stringify(schema.const)];
  if (schema.type === "array") return schema.items ? ["list of ", ...typeOf(schema.items)] : ["list"];
  const range = [schema.minimum, schema.maximum].filter((bound) => Math.abs(bound ?? Infinity) < 2 ** 53);
  return [schema.format ?? schema.type ?? "anything", range.length === 2 && ` ${range.join(" to ")}`].filter(Boolean);
}

const nameOf = (schema) => schema.$ref.split("/").at(-1);

/** Return a text whose parts between backticks are code. */
const prose = (text) => text.split("`").map((part, place) => (place % 2 ? h("code", {}, part) : part));

function properties(schema) {
  const required = new Set(schema.required ?? []);
  return table(Object.entries(schema.properties ?? {}).map(([name, each]) => [
    [h("code", {}, name), required.has(name) && h("span.small.muted", {}, " required")],
    typeOf(each),
    prose(each.description ?? ""),
  ]));
}

function table(rows) {
  return rows.length > 0 && h("div.scrolls", { tabindex: "0", role: "group", "aria-label": "Fields" },
    h("table.table", {}, h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map((cell) => h("td", {}, cell)))))));
}

/** Return a value that a schema might have, with its required fields only. */
function sample(schema, schemas) {
  if (!schema) return null;
  if (schema.$ref) return sample(schemas[nameOf(schema)], schemas);
  if (schema.examples) return schema.examples[0];
  if (schema.enum) return schema.enum[0];
  const [first] = schema.anyOf ?? [];
  if (first) return sample(first, schemas);
  if (schema.type !== "object" || !schema.required?.length) return SAMPLES[schema.type] ?? null;
  return Object.fromEntries(schema.required.map((name) => [name, sample(schema.properties[name], schemas)]));
}

function curl(method, path, operation, schemas) {
  const verb = method === "get" ? "" : `-X ${method.toUpperCase()} `;
  const body = operation.requestBody?.content["application/json"]?.schema;
  const json = body ? ` --json '${JSON.stringify(sample(body, schemas))}'` : "";
  const token = operation.security ? " -H \"Authorization: Bearer $TOKEN\"" : "";
  return `curl -s ${verb}'${location.origin}${path}'${token}${json}`;
}

function operation(method, path, described, schemas) {
  const answers = Object.entries(described.responses ?? {});
  const done = answers.filter(([status]) => status < 300);
  const bodies = Object.entries(described.requestBody?.content ?? {});
  const [summary, ...more] = (described.description ?? described.summary ?? "").split("\n\n");
  return h("details.operation.card", { id: `${method}${path}` },
    h("summary", {}, h(`span.chip.method.${METHODS[method] ?? "good"}`, {}, method.toUpperCase()), h("code", {}, path),
      h("span.muted.small", {}, prose(summary))),
    h("div.stack", {},
      more.map((text) => h("p", {}, prose(text))),
      h("pre", { tabindex: "0" }, curl(method, path, described, schemas)),
      described.parameters && [h("h3", {}, "Parameters"), table(described.parameters.map((each) => [
        [h("code", {}, each.name), h("span.small.muted", {}, ` ${each.in}${each.required ? ", required" : ""}`)],
        typeOf(each.schema), prose(each.description ?? "")]))],
      bodies.length > 0 && [h("h3", {}, "Body"), table(bodies.map(([type, { schema }]) => [h("code", {}, type), typeOf(schema)]))],
      h("h3", {}, "Answers"),
      table(done.flatMap(([status, { content }]) => Object.entries(content ?? {}).map(([type, { schema }]) =>
        [status, typeOf(schema), h("code", {}, type)]))),
      h("p.small.muted", {}, "Problems: ", answers.filter(([status]) => status >= 400).map(([status]) => status).join(", "), ", as ",
        h("a", { href: "#problem" }, "problem"), ".")));
}

/** Open what the address names, and show it. */
function reveal() {
  const wanted = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (wanted instanceof HTMLDetailsElement) wanted.open = true;
  wanted?.scrollIntoView();
}

async function start() {
  const { info, paths, components } = await (await fetch("/openapi.json")).json();
  const { schemas } = components;
  const sections = new Map();
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, described] of Object.entries(methods)) {
      const [tag = "others"] = described.tags ?? [];
      sections.set(tag, [...(sections.get(tag) ?? []), operation(method, path, described, schemas)]);
    }
  }
  const titles = [...sections.keys(), "forms"];
  const idOf = (title) => `section-${title.replaceAll(" ", "-")}`;
  put(document.getElementById("nav"), titles.map((title) => h("a", { href: `#${idOf(title)}` }, capitalized(title))));
  put(main, h("section.stack", {},
    h("div.stack.tight", {}, h("h1", {}, "HTTP API"),
      h("p.muted", {}, `${info.summary} Version ${info.version}. `, h("a", { href: "/openapi.json" }, "/openapi.json"),
        " is the same for programs."),
      h("p.muted", {}, "Every request needs a token once the store has one: ",
        h("code", {}, "tidings token create STORE --role admin"), ".")),
    [...sections].map(([title, operations]) => [h("h2", { id: idOf(title) }, capitalized(title)), operations]),
    h("h2", { id: idOf("forms") }, "Forms"),
    Object.entries(schemas).map(([name, schema]) => h("details.schema.card", { id: name },
      h("summary", {}, h("code", {}, name), h("span.muted.small", {}, prose(schema.description ?? ""))),
      h("div", {}, schema.properties ? properties(schema) : h("p", {}, typeOf(schema)))))));
  reveal();
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener("hashchange", reveal);
start().catch((error) => put(main, h("p.notice.bad", { role: "alert" }, `The description cannot be read: ${error.message}`)));
