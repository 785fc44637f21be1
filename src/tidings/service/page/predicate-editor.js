// An editor for weighted predicates: rows that are added, changed and removed, each checked while it
// is written.

import { h, put } from "./dom.js";

const PAUSE_MS = 200;

/**
 * Return an editor: {element, value()}. `initial` and the value are pairs of a predicate and a weight.
 */
export function predicateEditor(context, initial) {
  const rows = h("ul.stack.tight.predicates", { "aria-label": "Weighted predicates" });
  const add = () => {
    const row = predicateRow(context, "", 1);
    rows.append(row);
    row.querySelector("input").focus();
  };
  rows.append(...initial.map(([text, weight]) => predicateRow(context, text, weight)));
  if (!initial.length) rows.append(predicateRow(context, "", 1));
  return {
    element: h(
      "div.stack.tight",
      {},
      h("p.muted.small", {}, "What fits more of them, or the heavier ones, ranks higher."),
      rows,
      h("div.row", {}, h("button.button", { type: "button", onclick: add }, "Add a predicate")),
    ),
    value: () =>
      [...rows.children]
        .map((row) => [...row.querySelectorAll("input")].map((input) => input.value.trim()))
        .filter(([text]) => text)
        .map(([text, weight]) => [text, Number(weight)]),
  };
}

function predicateRow({ api, signal }, initial, initialWeight) {
  const text = h("input.code.grow", {
    value: initial,
    placeholder: "genre = 'drama'",
    spellcheck: "false",
    autocapitalize: "off",
    autocomplete: "off",
    "aria-label": "Predicate",
  });
  const weight = h("input.weight", {
    type: "number",
    min: 0,
    step: "any",
    required: true,
    value: String(initialWeight),
    "aria-label": `Weight of ${initial || "the new predicate"}`,
  });
  const problem = h("p.notice.bad.small", { role: "alert", hidden: true });
  let timer = 0;
  let asked = 0;

  async function check() {
    const number = (asked += 1);
    const where = text.value.trim();
    const answer = where ? await api.post("/v1/conditions:check", { where }, signal).catch(() => ({})) : {};
    if (number !== asked) return; // another one was written meanwhile
    const detail = answer.problem?.detail ?? "";
    put(problem, detail).hidden = !detail;
    text.setAttribute("aria-invalid", String(Boolean(detail)));
  }

  text.addEventListener("input", () => {
    weight.setAttribute("aria-label", `Weight of ${text.value || "the new predicate"}`);
    clearTimeout(timer);
    timer = setTimeout(check, PAUSE_MS);
  });
  const row = h("li.stack.tight", {}, h("div.row", {}, text, weight, h(
    "button.button.plain",
    { type: "button", "aria-label": "Remove the predicate", onclick: () => remove() },
    "✕",
  )), problem);

  function remove() {
    const next = row.nextElementSibling ?? row.previousElementSibling;
    row.remove();
    next?.querySelector("input").focus();
  }
  return row;
}
