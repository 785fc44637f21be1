// An editor for conditions: checked while they are written, with the error at its character, and
// completed from what was published.

import { h, put } from "./dom.js";
import { capitalized, count, counted, percent } from "./format.js";
import { summaryOf, titleLink } from "./publication.js";

const PAUSE_MS = 200;
const MOST_CHOICES = 8;
const MOST_BEGINNINGS = 12;
const NAME = String.raw`"(?:[^"]|"")+"|[A-Za-z_]\w*`;
const VALUE = new RegExp(
  String.raw`(${NAME})\s*(?:=|!=|<>|<=|>=|<|>|\bi?like\b|\bin\s*\((?:[^()]*,)?)\s*('[^']*|[\w.+-]*)$`,
  "i",
);
const OPERATOR = new RegExp(String.raw`(?:^|\b(?:and|or|not)\b|\()\s*(${NAME})\s+([a-z=<>!]*)$`, "i");
const WORD = /(?:^|[\s(])("[^"]*|[A-Za-z_]\w*|)$/;
const JOINED = /(?:'|\)|\bnull\b|\btrue\b|\bfalse\b|\d)\s+([a-z]*)$/i;
const OPERATORS = {
  string: ["=", "!=", "like", "in (", "ilike", "is not null"],
  number: ["=", ">=", "<=", ">", "<", "between", "in ("],
  time: [">=", "<=", "between"],
  boolean: ["="],
};

/**
 * Return an editor: {element, text()}. `onChange(text)` is called when the text changes.
 */
export function conditionEditor({ api, signal }, initial, onChange) {
  const area = h("textarea.code", {
    id: "condition",
    rows: 3,
    spellcheck: "false",
    autocapitalize: "off",
    autocomplete: "off",
    value: initial,
    placeholder: "genre = 'drama' and year >= 2003",
    "aria-autocomplete": "list",
    "aria-controls": "completions",
    "aria-describedby": "condition-problem condition-result",
  });
  const backdrop = h("div.backdrop.code", { "aria-hidden": "true" });
  const choices = h("ul.completions", {
    id: "completions",
    role: "listbox",
    "aria-label": "Completions",
    hidden: true,
  });
  const problem = h("p.notice.bad", { id: "condition-problem", role: "alert", hidden: true });
  const result = h("div.stack.tight", { id: "condition-result", "aria-live": "polite" });
  const examples = h("div.stack.tight");
  const state = { timer: 0, asked: 0, attributes: [], active: -1 };

  api.get("/v1/attributes", {}, signal).then(
    (seen) => {
      state.attributes = seen.items;
      if (!area.value.trim()) draw(null, null);
    },
    () => {}, // without completions, the editor is still an editor
  );

  async function check() {
    const text = area.value;
    const number = (state.asked += 1);
    if (!text.trim()) {
      return draw(null, null);
    }
    try {
      const answer = await api.post("/v1/conditions:check", { where: text }, signal);
      if (number === state.asked) draw(answer.problem, answer.problem ? null : answer);
    } catch (error) {
      if (signal.aborted || number !== state.asked) return;
      draw({ detail: error.message, position: null }, null);
    }
  }

  function draw(error, answer) {
    problem.hidden = error === null;
    area.setAttribute("aria-invalid", String(error !== null));
    if (error) put(problem, described(error));
    put(backdrop, marked(area.value, error?.position ?? null));
    put(result, answer && summary(answer));
    put(examples, answer ? exampleList(answer.examples) : !area.value.trim() && beginnings());
  }

  /** Return what was published as buttons that begin a condition: nobody knows the names by heart. */
  function beginnings() {
    return state.attributes.length > 0 && [
      h("h3.small", {}, "Begin with what was published"),
      h("div.row", {}, state.attributes.slice(0, MOST_BEGINNINGS).map((each) =>
        h("button.chip.code", { type: "button", onclick: () => accept({ text: each.written, replaces: 0 }) }, each.written))),
    ];
  }

  function changed() {
    put(backdrop, marked(area.value, null));
    clearTimeout(state.timer);
    state.timer = setTimeout(check, PAUSE_MS);
    onChange(area.value);
  }

  async function complete() {
    const before = area.value.slice(0, area.selectionStart);
    const found = await candidates(before, state.attributes, api, signal);
    if (area.value.slice(0, area.selectionStart) !== before) return;
    state.active = -1;
    area.removeAttribute("aria-activedescendant");
    choices.hidden = found.length === 0;
    put(
      choices,
      found.slice(0, MOST_CHOICES).map((choice, place) =>
        h(
          "li",
          {
            id: `completion-${place}`,
            role: "option",
            "aria-selected": "false",
            onpointerdown: (event) => (event.preventDefault(), accept(choice)),
          },
          h("span.code", {}, choice.text),
          choice.note && h("span.muted.small", {}, choice.note),
        ),
      ),
    );
    choices.accept = (place) => accept(found[place]);
  }

  function accept({ text, replaces }) {
    const end = area.selectionStart;
    area.setRangeText(text.endsWith("(") ? text : `${text} `, end - replaces, end, "end");
    area.focus();
    changed();
    complete();
  }

  function move(step) {
    const options = [...choices.children];
    state.active =
      (state.active + step + options.length + (state.active < 0 && step < 0 ? 1 : 0)) % options.length;
    options.forEach((option, place) => option.setAttribute("aria-selected", String(place === state.active)));
    area.setAttribute("aria-activedescendant", options[state.active].id);
  }

  function close() {
    choices.hidden = true;
    area.removeAttribute("aria-activedescendant");
  }

  area.addEventListener("input", () => (changed(), complete()));
  area.addEventListener("blur", close);
  area.addEventListener("scroll", () => {
    backdrop.scrollTop = area.scrollTop;
  });
  area.addEventListener("keydown", (event) => {
    if (event.key === " " && event.ctrlKey) return (event.preventDefault(), complete());
    if (choices.hidden) return;
    if (event.key === "ArrowDown") move(1);
    else if (event.key === "ArrowUp") move(-1);
    else if (event.key === "Escape") close();
    else if (["Enter", "Tab"].includes(event.key) && state.active >= 0) choices.accept(state.active);
    else return;
    event.preventDefault();
  });
  put(backdrop, marked(initial, null));
  check();
  return {
    element: h(
      "div.stack.tight",
      {},
      h("label.field", { for: "condition" }, "Condition"),
      h("div.editor", {}, backdrop, area, choices),
      h("p.muted.small", {}, "As after “where” in SQL. Names and values are completed while you type."),
      problem,
      result,
      examples,
    ),
    text: () => area.value,
  };
}

/** Return a problem in words; the lines that show its place in a terminal are left out. */
function described({ detail, position }) {
  const [first, ...more] = detail.split("\n");
  const rest = position === null ? more : more.slice(2);
  const where = position === null ? "" : ` (character ${count(position + 1)})`;
  return [h("span", {}, `${capitalized(first)}${where}`), rest.map((line) => h("span.small.line", {}, capitalized(line)))];
}

/** Return the text with a mark at the character that cannot be read. */
function marked(text, position) {
  if (position === null) return [text, "\n"];
  const characters = Array.from(text); // positions count characters, not UTF-16 units
  const before = characters.slice(0, position).join("");
  const rest = characters.slice(position).join("");
  const word = /^\s*(?:\w+|'[^']*'?|.)/u.exec(rest)?.[0] || " ";
  return [before, h("mark", {}, word), rest.slice(word.length), "\n"];
}

function summary(answer) {
  const share = answer.publications ? answer.matched / answer.publications : 0;
  const words = answer.publications
    ? `${count(answer.matched)} of the last ${counted(answer.publications, "publication")} match (${percent(share)})`
    : "Nothing was published yet, so nothing can match.";
  return [
    h("p", {}, h("strong.matched", {}, words)),
    h("span.bar", { style: { "--share": share } }),
    answer.advice.map((each) => h("p.notice", {}, h("code", {}, each.predicate), `: ${each.text}`)),
  ];
}

function exampleList(examples) {
  if (!examples.length) return null;
  return [
    h("h3.small", {}, "For example"),
    h(
      "ul.examples",
      {},
      examples.map((each) =>
        h(
          "li",
          {},
          h("span", {}, titleLink(each)),
          h("span.muted.small", {}, summaryOf({ attributes: each.attributes })),
        ),
      ),
    ),
  ];
}

/** Return what may come next: values of an attribute, operators, words that join, or attributes. */
async function candidates(before, attributes, api, signal) {
  const value = VALUE.exec(before);
  if (value) {
    const attribute = attributes.find((each) => each.written === value[1] || each.name === value[1]);
    return attribute ? values(attribute, value[2], api, signal) : [];
  }
  const operator = OPERATOR.exec(before);
  if (operator) {
    const attribute = attributes.find((each) => each.written === operator[1] || each.name === operator[1]);
    const texts = [...new Set((attribute?.types ?? []).flatMap((type) => OPERATORS[type] ?? []))];
    return choose(
      texts.map((text) => ({ text })),
      operator[2],
    );
  }
  const joined = JOINED.exec(before);
  if (joined) return choose([{ text: "and" }, { text: "or" }], joined[1]);
  const word = WORD.exec(before)?.[1];
  if (word === undefined) return [];
  return choose(
    attributes.map((each) => ({
      text: each.written,
      name: each.name,
      note: `${each.types.join(", ")} · ${counted(each.publications, "publication")}`,
    })),
    word,
  );
}

async function values(attribute, typed, api, signal) {
  const wanted = typed.replace(/^'/, "");
  let items = attribute.values;
  if (attribute.distinct > items.length && wanted) {
    const answer = await api
      .get("/v1/attributes", { name: attribute.name, contains: wanted }, signal)
      .catch(() => null);
    items = answer?.items[0]?.values ?? items;
  }
  return items
    .filter((each) => each.written.toLowerCase().includes(wanted.toLowerCase()) && each.written !== typed)
    .map((each) => ({
      text: each.written,
      note: counted(each.publications, "publication"),
      replaces: typed.length,
    }));
}

function choose(all, typed) {
  const wanted = typed.toLowerCase().replace(/^"/, "");
  return all
    .filter((each) => (each.name ?? each.text).toLowerCase().startsWith(wanted) && each.text !== typed)
    .map((each) => ({ ...each, replaces: typed.length }));
}
