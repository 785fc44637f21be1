// Reach: one event, the subscriptions that it fits best, and what the others lack.

import { Problem } from "../api.js";
import { h, put } from "../dom.js";
import { count, counted, rank } from "../format.js";

const SCORERS = {
  preference: ["Preference", "Those whose whole condition holds, by how much their subscriber prefers them."],
  exact: ["Exact", "Those whose whole condition holds, by their scores."],
  relaxed: ["Relaxed", "By the weights of the predicates that hold, even if others fail."],
};
const EXAMPLE = { genre: ["drama", "comedy"], year: 2003, rating: 7.4 };
const RECENT = 12;

export default {
  name: "reach",
  title: "Reach",
  icon: "M12 12h.01M8.5 8.5a5 5 0 0 0 0 7M15.5 8.5a5 5 0 0 1 0 7M5.6 5.6a9 9 0 0 0 0 12.8M18.4 5.6a9 9 0 0 1 0 12.8",
  roles: ["publisher", "admin"],
  needsSubscriber: false,

  async show(context) {
    const { items } = await context.api.get("/v1/events", { limit: RECENT }, context.signal);
    const view = new Reach(context, items);
    await view.ask();
    return view.element;
  },
};

class Reach {
  constructor(context, recent) {
    this.context = context;
    const { params } = context;
    this.scorer = SCORERS[params.scorer] ? params.scorer : "preference";
    this.k = Math.min(100, Math.max(1, Number.parseInt(params.k, 10) || 10));
    this.problem = h("p.notice.bad", { id: "reach-problem", role: "alert", hidden: true });
    this.text = h("textarea.code", {
      id: "reach-event", rows: 6, spellcheck: "false", autocomplete: "off", value: params.event ?? written(recent[0]?.attributes ?? EXAMPLE),
      "aria-describedby": "reach-help reach-problem",
      onkeydown: (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.submit(); },
    });
    this.meaning = h("p.small.muted");
    this.result = h("div.stack", { "aria-live": "polite" });
    this.fit();
    this.element = h("section.stack", {},
      h("div.stack.tight", {}, h("h1", {}, "Whom does it reach?"),
        h("p.muted", {}, "One event, the subscriptions that it fits best, and what the others lack. Nothing is published.")),
      this.form(recent), this.result);
  }

  form(recent) {
    return h("form.card.stack", { onsubmit: (event) => { event.preventDefault(); this.submit(); } },
      h("div.stack.tight", {},
        h("label.field", { for: "reach-event" }, "Event"),
        this.text,
        h("p.small.muted", { id: "reach-help" }, "Its attributes as JSON, or a whole event. Ctrl and Enter asks."),
        this.problem),
      recent.length > 0 && h("div.row", {}, h("label.field", { for: "reach-recent" }, "Or one that was published"),
        this.picker(recent)),
      h("div.row", {},
        this.segments(),
        h("label.check", {}, "The best", this.number()),
        h("button.button.primary", { type: "submit" }, "Show")),
      this.meaning);
  }

  picker(recent) {
    const select = h("select.wide", {
      id: "reach-recent",
      onchange: () => { this.text.value = written(recent[Number(select.value)].attributes); this.fit(); this.submit(); },
    }, recent.map((event, index) => h("option", { value: index }, event.content?.title ?? event.id)));
    return select;
  }

  /** Make the text as tall as what it holds, up to a point. */
  fit() {
    this.text.rows = Math.min(14, Math.max(4, this.text.value.split("\n").length));
  }

  segments() {
    const group = h("div.segments", { role: "group", "aria-label": "Scorer" });
    const draw = () => put(this.meaning, SCORERS[this.scorer][1]) && put(group, Object.entries(SCORERS).map(([name, [text]]) => h("button", {
      type: "button", "aria-pressed": String(this.scorer === name),
      onclick: () => { this.scorer = name; draw(); group.querySelector(`[aria-pressed="true"]`).focus(); this.submit(); },
    }, text)));
    draw();
    return group;
  }

  number() {
    const input = h("input", {
      type: "number", min: 1, max: 100, value: this.k,
      onchange: () => { this.k = Math.min(100, Math.max(1, input.valueAsNumber || 10)); this.submit(); },
    });
    return input;
  }

  submit() {
    this.context.remember({ event: this.text.value, scorer: this.scorer, k: this.k });
    return this.ask();
  }

  async ask() {
    const { api, signal } = this.context;
    const event = this.read();
    if (event === null) return;
    try {
      const question = { event, k: this.k, scorer: this.scorer, others: 50 };
      this.draw(event, await api.post("/v1/target", question, signal));
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof Problem)) throw error;
      this.complain(error.message);
    }
  }

  /** Return the event in the text; attributes alone are one without an id. */
  read() {
    let form;
    try {
      form = JSON.parse(this.text.value);
    } catch (error) {
      this.complain(`This is not JSON: ${error.message}`);
      return null;
    }
    if (form === null || typeof form !== "object" || Array.isArray(form)) {
      this.complain("An event is an object, such as {\"genre\": \"drama\"}.");
      return null;
    }
    this.complain(null);
    const isWhole = form.attributes !== null && typeof form.attributes === "object" && !Array.isArray(form.attributes);
    return isWhole ? form : { attributes: form };
  }

  complain(message) {
    this.problem.hidden = message === null;
    this.problem.textContent = message ?? "";
    this.text.setAttribute("aria-invalid", String(message !== null));
    if (message !== null) put(this.result);
  }

  draw(event, { items, others }) {
    const top = Math.max(1e-12, ...items.map((item) => item.score));
    put(this.result,
      h("section.stack", {},
        h("h2", {}, items.length ? `It fits ${counted(items.length, "subscription")} best` : "It fits no subscription"),
        h("ol.stack.placements", {}, items.map((item) => this.placement(item, item.score / top)))),
      others.length > 0 && h("section.stack", {},
        h("h2", {}, "What the others lack"),
        h("ol.stack.placements.several", {}, others.map((item) => this.placement(item, (item.score ?? 0) / top)))));
    this.context.announce(`${count(items.length)} reached, ${count(others.length)} others`);
  }

  placement(item, share) {
    const { reason } = item;
    return h("li.card.stack.tight", {},
      h("div.row.spread", {},
        h("h3.row", {}, item.position !== null && h("span.place.figure", {}, count(item.position)), item.subscription),
        item.score !== null
          ? h("span.row.score", {}, h("span.bar", { style: { "--share": share }, "aria-hidden": "true" }),
            h("strong.figure", {}, rank(item.score)))
          : h("span.chip.warm", {}, reason.fails.length === 1 ? "one condition short" : `lacks ${counted(reason.fails.length, "condition")}`)),
      item.position > item.k && h("p.small.muted", {},
        item.lacking > 0 ? `It lacks ${rank(item.lacking)} to be among the best ${count(item.k)}.` : "It ties with the last of the best; smaller ids go first."),
      reason.holds.length > 0 && h("ul.row.parts", { "aria-label": "Holds" }, reason.holds.map((text) => h("li.chip.good.code", {}, text))),
      reason.fails.length > 0 && h("ul.stack.tight.parts", { "aria-label": "Fails" }, reason.fails.map(failed)));
  }
}

function failed({ predicate, attribute, value, type, hint }) {
  const has = type === null ? `there is no ${attribute}` : `${attribute} is ${JSON.stringify(value)}`;
  return h("li.row", {}, h("span.chip.bad.code", {}, predicate), h("span.small.muted", {}, has, hint && `; ${hint}`));
}

function written(attributes) {
  return JSON.stringify(attributes, null, 1).replace(/\[\s+([^\]]*?)\s+\]/g, (_, inner) => `[${inner.replace(/\s+/g, " ")}]`);
}
