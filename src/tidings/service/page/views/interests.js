// My interests: conditions, checked while they are written, and preferences between them.

import { path } from "../api.js";
import { conditionEditor } from "../condition-editor.js";
import { h, put } from "../dom.js";
import { counted, rank } from "../format.js";
import { predicateEditor } from "../predicate-editor.js";
import { joined, levelsOf, moved, pairsOf, prefrankOf } from "../preferences.js";

export default {
  name: "interests",
  title: "My interests",
  icon: "M12 20s-7-4.4-7-10a4 4 0 0 1 7-2.6A4 4 0 0 1 19 10c0 5.6-7 10-7 10z",
  roles: ["subscriber", "admin"],
  needsSubscriber: true,

  async show(context) {
    const { api, subscriber, signal, params } = context;
    const [person, page] = await Promise.all([
      api.get(path`/v1/subscribers/${subscriber}`, {}, signal).catch((error) => {
        if (error.status === 404) return {}; // it only owns subscriptions
        throw error;
      }),
      api.get("/v1/subscriptions", { subscriber, limit: 1000 }, signal),
    ]);
    const edited = page.items.find((item) => item.id === params.edit);
    const isNew = params.new === "1";
    return h(
      "section.stack",
      {},
      h(
        "div.row.spread",
        {},
        h("h1", {}, "My interests"),
        h(
          "div.row",
          {},
          isWeighted(person) &&
            h("a.button", { href: context.link("interests", { new: "1", weighted: "1" }) }, "New weighted interest"),
          h("a.button.primary", { href: context.link("interests", { new: "1" }) }, "New interest"),
        ),
      ),
      h(
        "div.interests",
        { class: edited || isNew ? "editing" : "" },
        interestList(context, person, page.items, edited),
        (edited || isNew) && editor(context, edited ?? null, page.items),
      ),
    );
  },
};

/** Return the list of interests with the preferences between them. */
function interestList(context, person, items, edited) {
  if (!items.length) {
    return h(
      "div.card.stack.empty",
      {},
      h("h2", {}, "No interests yet"),
      h("p.muted", {}, "An interest is a condition: what fits it may come to your feed."),
    );
  }
  if (isWeighted(person)) {
    return h(
      "div.stack",
      {},
      h("p.muted.small", {}, "Ranks come from the weights of the predicates."),
      h(
        "ol.stack.tight",
        {},
        items.map((item) => row(context, item, edited)),
      ),
    );
  }
  return preferences(context, person, items, edited, scorerOf(person) === "exact" ? "score" : "prefrank");
}

/** Return the name of a person's scorer: a part of a policy is a form, or its bare name. */
function scorerOf(person) {
  const scorer = person.policy?.scorer ?? "preference";
  return scorer.name ?? scorer;
}

/** Return whether ranks come from the weights of predicates. */
function isWeighted(person) {
  return ["relaxed", "graph"].includes(scorerOf(person));
}

function preferences(context, person, items, edited, field) {
  const byId = new Map(items.map((item) => [item.id, item]));
  const names = items.map((item) => item.id);
  const state = {
    mode: field === "score" || items.some((item) => item[field] !== undefined) ? "numbers" : "order",
    levels: levelsOf(names, person.prefers ?? []),
    numbers: new Map(),
    changed: false,
  };
  const prefrank = (name) =>
    prefrankOf(
      state.levels.findIndex((level) => level.includes(name)),
      state.levels.length,
    );
  names.forEach((name) =>
    state.numbers.set(name, byId.get(name)[field] ?? (field === "score" ? 1 : prefrank(name))),
  );
  const root = h("div.stack");

  function change(levels, name, button = "up") {
    Object.assign(state, { levels, changed: true });
    draw();
    focusOn(name, button);
    context.announce(
      `${name} is at level ${state.levels.findIndex((level) => level.includes(name)) + 1} of ${state.levels.length}`,
    );
  }

  function setMode(mode) {
    if (mode === state.mode) return;
    if (mode === "numbers") names.forEach((name) => state.numbers.set(name, prefrank(name)));
    else state.levels = byNumber(state.numbers);
    Object.assign(state, { mode, changed: true });
    draw();
    root.querySelector(`[aria-pressed="true"]`)?.focus();
  }

  /** Focus a button of an interest, or another one if that cannot be pressed any more. */
  function focusOn(name, button) {
    const tools = root.querySelector(`[data-name="${CSS.escape(name)}"] .tools`);
    (tools?.querySelector(`.${button}:enabled`) ?? tools?.querySelector(":enabled"))?.focus();
  }

  async function save(button) {
    // Until the view is drawn again, a further change would be lost.
    root.inert = true;
    try {
      await savePreferences(context, person, items, state, field);
      context.notify("Preferences saved");
      context.go("interests", context.params);
    } catch (error) {
      root.inert = false;
      button.focus();
      put(problem, error.message).hidden = false;
    }
  }

  const problem = h("p.notice.bad", { role: "alert", hidden: true });
  const unsaved = h(
    "div.row.save",
    { role: "region", "aria-label": "Unsaved preferences" },
    h("span.small", {}, "Not saved yet"),
    h("span.grow"),
    h("button.button", { onclick: () => context.go("interests", context.params) }, "Undo"),
    h("button.button.primary", { onclick: (event) => save(event.currentTarget) }, "Save preferences"),
  );

  function draw() {
    const rows = state.mode === "order" ? state.levels.map(levelRow) : byPreference().map(numberRow);
    put(
      root,
      (items.length > 1 || field === "score") &&
        h("div.row.spread", {}, field === "prefrank" && modes(), h("p.muted.small", {}, hint())),
      h("ol.stack.tight.preferences", {}, rows),
      problem,
      unsaved,
    );
    unsaved.hidden = !state.changed;
  }

  function modes() {
    const button = (mode, text) =>
      h("button", { "aria-pressed": String(mode === state.mode), onclick: () => setMode(mode) }, text);
    const group = { role: "group", "aria-label": "How preferences are given" };
    return h("div.segments", group, button("order", "By order"), button("numbers", "By numbers"));
  }

  function hint() {
    if (state.mode === "order") {
      // Fingers scroll; only a mouse drags.
      return `What you like better stands above: ${matchMedia("(any-hover: hover)").matches ? "drag it, or " : ""}use the arrows.`;
    }
    return field === "score" ? "The score of what matches." : "How much you like each, from 0 to 1.";
  }

  const byPreference = () => [...names].sort((a, b) => state.numbers.get(b) - state.numbers.get(a));

  function levelRow(level, place) {
    const rows = level.map((name) => orderRow(name, place));
    return h("li", {}, h("ol.level", { "aria-label": `Level ${place + 1}` }, rows));
  }

  function orderRow(name, place) {
    const level = state.levels[place];
    const alone = level.length === 1;
    const first = place === 0 && alone;
    const last = place === state.levels.length - 1 && alone;
    // Without the name, the levels after its own move up if it stood alone.
    const handle = h("span.handle", { "aria-hidden": "true", title: "Drag" }, "⠿");
    const element = row(
      context,
      byId.get(name),
      edited,
      handle,
      h(
        "span.row.tools",
        {},
        h(
          "button.button.plain.up",
          {
            "aria-label": `Prefer ${name} more`,
            disabled: first,
            onclick: () => change(moved(state.levels, name, alone ? place - 1 : place), name),
          },
          "↑",
        ),
        h(
          "button.button.plain.down",
          {
            "aria-label": `Prefer ${name} less`,
            disabled: last,
            onclick: () => change(moved(state.levels, name, alone ? place + 2 : place + 1), name, "down"),
          },
          "↓",
        ),
        h(
          "button.button.plain.join",
          {
            "aria-label": `Prefer ${name} as much as what is above`,
            disabled: place === 0,
            onclick: () => change(joined(state.levels, name), name, "join"),
          },
          "=",
        ),
      ),
      meter(prefrankOf(place, state.levels.length)),
    );
    element.draggable = true;
    element.addEventListener("dragstart", (event) => {
      event.dataTransfer.setData("text/x-tidings-interest", name);
      event.dataTransfer.effectAllowed = "move";
      element.classList.add("dragged");
    });
    element.addEventListener("dragend", () => element.classList.remove("dragged"));
    element.addEventListener("dragover", (event) => {
      if (!event.dataTransfer.types.includes("text/x-tidings-interest")) return;
      event.preventDefault();
      element.classList.toggle("below", isLower(event, element));
      element.classList.toggle("above", !isLower(event, element));
    });
    element.addEventListener("dragleave", () => element.classList.remove("above", "below"));
    element.addEventListener("drop", (event) => {
      event.preventDefault();
      const moving = event.dataTransfer.getData("text/x-tidings-interest");
      if (byId.has(moving) && moving !== name)
        change(moved(state.levels, moving, place + (isLower(event, element) ? 1 : 0)), moving);
    });
    return element;
  }

  function numberRow(name) {
    const value = state.numbers.get(name);
    const input = h("input", {
      type: "number",
      min: 0,
      max: field === "score" ? null : 1,
      step: field === "score" ? "any" : 0.01,
      value: String(Number(value.toFixed(4))),
      "aria-label": `Preference of ${name}`,
    });
    const slider =
      field === "prefrank" &&
      h("input", {
        type: "range",
        min: 0,
        max: 1,
        step: 0.05,
        value: String(value),
        "aria-label": `Preference of ${name}, as a slider`,
        oninput: () => {
          input.value = slider.value;
          set(Number(slider.value));
        },
      });
    const set = (number) => {
      state.numbers.set(name, number);
      state.changed = true;
      unsaved.hidden = false;
    };
    input.addEventListener("input", () => {
      if (!input.reportValidity() || input.value === "") return;
      if (slider) slider.value = input.value;
      set(Number(input.value));
    });
    return row(context, byId.get(name), edited, null, h("span.row.tools", {}, slider, input));
  }

  draw();
  return root;
}

const isLower = (event, element) => {
  const box = element.getBoundingClientRect();
  return event.clientY > box.top + box.height / 2;
};

function byNumber(numbers) {
  const distinct = [...new Set(numbers.values())].sort((a, b) => b - a);
  return distinct.map((value) => [...numbers].filter(([, each]) => each === value).map(([name]) => name));
}

/** Save an order as pairs, without numbers that would override it; or numbers, without pairs. */
async function savePreferences({ api, subscriber }, person, items, state, field) {
  const isOrder = state.mode === "order";
  for (const item of items) {
    const { [field]: before, ...rest } = item;
    const after = isOrder ? undefined : state.numbers.get(item.id);
    if (before === after) continue;
    const form = after === undefined ? rest : { ...rest, [field]: after };
    await api.put(path`/v1/subscriptions/${item.id}`, form);
  }
  const { prefers: before = [], ...rest } = person;
  const after = isOrder ? pairsOf(state.levels) : [];
  if (field === "prefrank" && JSON.stringify(before) !== JSON.stringify(after)) {
    await api.put(path`/v1/subscribers/${subscriber}`, { ...rest, prefers: after }, { wait: "applied" });
  }
}

function row(context, item, edited, ...more) {
  return h(
    "li.interest.card",
    { "data-name": item.id, class: item === edited ? "current" : "" },
    more[0],
    h(
      "div.body",
      {},
      h(
        "a.name",
        {
          href: context.link("interests", { edit: item.id }),
          "aria-current": item === edited ? "true" : null,
        },
        item.id,
      ),
      h(
        "code.where",
        {},
        item.where ?? item.any.map(([where, weight]) => `${where} (${rank(weight)})`).join(", "),
      ),
    ),
    more.slice(1),
  );
}

function meter(value) {
  return h(
    "span.meter",
    { title: `Preference ${rank(value)}` },
    h("span.figure.small", {}, rank(value)),
    h("span.bar", { style: { "--share": value } }),
  );
}

/** Return the editor of an interest, or of a new one. */
function editor(context, item, items) {
  const { api, subscriber, params } = context;
  const isNew = item === null;
  const prefix = context.me.role === "subscriber" ? `${subscriber}:` : "";
  const name = h("input", {
    id: "name",
    value: params.name ?? "",
    placeholder: "films",
    autocomplete: "off",
    spellcheck: "false",
    required: true,
  });
  const problem = h("p.notice.bad", { role: "alert", hidden: true });
  const saveButton = h("button.button.primary", {}, isNew ? "Add interest" : "Save");
  const predicates = item?.any || (isNew && params.weighted) ? predicateEditor(context, item?.any ?? []) : null;
  const condition = predicates
    ? null
    : conditionEditor(context, params.draft ?? item?.where ?? "", (text) =>
        context.remember({ draft: text === (item?.where ?? "") ? null : text }),
      );

  async function save(event) {
    event.preventDefault();
    problem.hidden = true;
    const id = isNew ? `${prefix}${name.value.trim()}` : item.id;
    if (isNew && items.some((each) => each.id === id)) return fail(`There is an interest ${id} already.`);
    const { where, any, ...rest } = item ?? { subscriber };
    const form = condition
      ? { ...rest, where: condition.text() }
      : { ...rest, any: predicates.value() };
    saveButton.disabled = true;
    try {
      await api.call("PUT", path`/v1/subscriptions/${id}`, {
        body: form,
        parameters: { wait: "applied" },
        headers: isNew ? { "If-None-Match": "*" } : {},
      });
      context.notify(`${id} saved`);
      context.remember({ draft: null });
      context.go("interests", { edit: id });
    } catch (error) {
      fail(error.message);
    }
    saveButton.disabled = false;
  }

  function fail(message) {
    put(problem, message).hidden = false;
  }

  const removal = h("button.button.danger", { type: "button", onclick: remove }, "Delete");
  async function remove() {
    if (removal.dataset.sure !== "yes") {
      removal.dataset.sure = "yes";
      return put(removal, "Really delete?");
    }
    try {
      await api.delete(path`/v1/subscriptions/${item.id}`, { wait: "applied" });
      context.notify(`${item.id} deleted`);
      context.go("interests");
    } catch (error) {
      fail(error.message);
    }
  }

  return h(
    "form.card.stack.edit",
    { onsubmit: save, "aria-label": isNew ? "New interest" : `Edit ${item.id}` },
    h(
      "div.row.spread",
      {},
      h("h2", {}, isNew ? "New interest" : item.id),
      h("a.button.plain", { href: context.link("interests"), "aria-label": "Close the editor" }, "Close"),
    ),
    isNew &&
      h(
        "div.stack.tight",
        {},
        h("label.field", { for: "name" }, "Name"),
        h("div.row", {}, prefix && h("span.muted", {}, prefix), name),
      ),
    (condition ?? predicates).element,
    problem,
    h("div.row", {}, saveButton, !isNew && removal),
  );
}
