// My rules: how many, how fresh, how different, and when; beside them, what the feed would have been.

import { Problem, path } from "../api.js";
import { barChart, clockFace } from "../chart.js";
import { h, put } from "../dom.js";
import { count, counted, duration, moment, percent, rank, words } from "../format.js";
import { HALF_LIVES, PERIODS, readPolicy, samePolicy, writePolicy } from "../policy.js";

const LISTED = 20;
const WHEN = { stream: "As it comes", period: "Every so often", times: "At set times", kept: "As saved" };
const CHANGES = { comes: "Comes", goes: "Goes", stays: "Stays" };

export default {
  name: "rules",
  title: "My rules",
  icon: "M4 7h9M17 7h3M4 17h3M11 17h9M13 7a2 2 0 1 0 4 0a2 2 0 1 0-4 0M7 17a2 2 0 1 0 4 0a2 2 0 1 0-4 0",
  roles: ["subscriber", "admin"],
  needsSubscriber: true,

  async show(context) {
    const owner = await findOwner(context);
    const view = new Rules(context, owner);
    view.draw();
    await view.compare();
    return view.element;
  },
};

async function findOwner({ api, subscriber, signal }) {
  try {
    return await api.get(path`/v1/subscribers/${subscriber}`, {}, signal);
  } catch (error) {
    // Who only owns subscriptions has the default policy.
    if (error instanceof Problem && error.status === 404) return { id: subscriber, policy: {} };
    throw error;
  }
}

class Rules {
  constructor(context, owner) {
    this.context = context;
    this.owner = owner;
    this.saved = owner.policy ?? {};
    this.shown = CHANGES[context.params.show] ? context.params.show : null;
    this.state = readPolicy(this.tried() ?? this.saved);
    this.controls = h("form.stack.controls", { onsubmit: (event) => event.preventDefault(), "aria-label": "Rules" });
    this.result = h("section.stack.result", { "aria-label": "What the feed would have been" });
    // Made once: a button that has the focus must not be replaced when an answer comes.
    this.saveButton = h("button.button.primary", { type: "button", onclick: () => this.save() }, "Save these rules");
    this.undoButton = h("button.button", { type: "button", onclick: () => this.reset() }, "Undo");
    this.note = h("span");
    this.saving = h("div.row.saving", {}, this.saveButton, this.undoButton, this.note);
    this.element = h("section.stack", {},
      h("div.stack.tight", {}, h("h1", {}, "My rules"),
        h("p.muted", {}, "Try them on what really came. Nothing changes until you save.")),
      h("div.sides", {}, h("div.stack", {}, this.controls, this.saving), this.result));
  }

  /** Return the policy in the address, if there is one. */
  tried() {
    try {
      const policy = JSON.parse(this.context.params.policy ?? "null");
      return policy && typeof policy === "object" && !Array.isArray(policy) ? policy : null;
    } catch {
      return null;
    }
  }

  get policy() {
    return writePolicy(this.state);
  }

  get isSaved() {
    return samePolicy(this.policy, writePolicy(readPolicy(this.saved)));
  }

  draw() {
    const { state } = this;
    put(this.controls, this.howMany(state), this.when(state), this.taste(state), this.rules(state));
    this.drawSaving();
  }

  drawSaving(message = null) {
    const { isSaved } = this;
    this.saveButton.disabled = this.undoButton.disabled = isSaved;
    put(this.note, message ?? this.summary(isSaved));
  }

  /** Return the outcome in a line, which stays in sight where there is no room beside the controls. */
  summary(isSaved) {
    if (isSaved || !this.comparison) return h("span.muted.small", {}, isSaved ? "These are the saved rules." : "Not saved.");
    const { tried, saved, comes, goes } = this.comparison;
    return h("span.small", {}, `${count(tried.delivered)} instead of ${count(saved.delivered)} (+${count(comes.count)} −${count(goes.count)})`);
  }

  howMany(state) {
    return group("How many",
      this.slider("At a time", "k", { min: 1, max: 20 }, state.k, (value) => { state.k = value; },
        (value) => `the ${counted(value, "best one", "best")}`));
  }

  when(state) {
    const kinds = Object.keys(WHEN).filter((kind) => kind !== "kept" || readPolicy(this.saved).when === "kept");
    return group("When",
      h("div.segments", { role: "group", "aria-label": "When to choose" }, kinds.map((kind) =>
        h("button", {
          type: "button", "aria-pressed": String(state.when === kind),
          onclick: () => { state.when = kind; this.draw(); this.focusOn(`[aria-pressed="true"]`); this.changed(); },
        }, WHEN[kind]))),
      state.when === "stream" && this.slider("Of the last", "length", { min: 1, max: 200 }, state.length,
        (value) => { state.length = value; }, (value) => counted(value, "match", "matches")),
      state.when === "period" && this.steps("Every", "period", PERIODS, state.period, (value) => { state.period = value; }, duration),
      state.when === "times" && this.times(state));
  }

  times(state) {
    return h("div.row.clocks", {},
      this.face(state),
      h("div.stack.tight", {},
        state.at.map((_, index) => this.digest(state, index)),
        state.at.length < 8 && h("button.button.plain", {
          type: "button",
          onclick: () => { state.at.push("12:00"); this.draw(); this.focusOnDigest(state.at.length); this.changed(); },
        }, "Add a time")));
  }

  digest(state, index) {
    const label = (time) => `Remove the digest at ${time}`;
    const removal = h("button.button.plain", {
      type: "button", "aria-label": label(state.at[index]),
      onclick: () => { state.at.splice(index, 1); this.draw(); this.focusOnDigest(Math.min(index + 1, state.at.length)); this.changed(); },
    }, "Remove");
    return h("div.row", {},
      this.time(`Digest ${index + 1}`, state.at[index], (value) => { state.at[index] = value; removal.setAttribute("aria-label", label(value)); }),
      state.at.length > 1 && removal);
  }

  /** Return the clock with the times of digests and the quiet hours. */
  face(state) {
    return clockFace({ marks: state.when === "times" ? state.at : [], quiet: state.rules.quiet.on ? state.rules.quiet : null });
  }

  taste(state) {
    const saved = readPolicy(this.saved);
    return group("What counts",
      this.steps("Freshness", "freshness", HALF_LIVES, state.halfLife, (value) => { state.halfLife = value; },
        (value) => (value === null ? "age does not matter" : value === "kept" ? "as saved" : `worth half after ${duration(value)}`),
        saved.halfLife === "kept" ? ["kept"] : []),
      this.slider("Variety", "variety", { min: 0, max: 10 }, state.variety === "kept" ? 0 : state.variety,
        (value) => { state.variety = value; },
        (value) => (state.variety === "kept" ? `as saved: ${words(this.saved.diversify)}` : value === 0 ? "only the rank counts" : `${percent(value / 10)} different, ${percent(1 - value / 10)} rank`)));
  }

  rules(state) {
    const { quota, quiet, different } = state.rules;
    return group("When not to disturb",
      this.rule("quota", quota, "Only the best", [
        h("input", {
          type: "number", min: 1, max: 1000, value: quota.n, "aria-label": "How many at most",
          onchange: (event) => { quota.n = Math.max(1, Math.trunc(event.target.valueAsNumber || 1)); this.changed(); },
        }),
        this.select("per", ["hour", "day", "week"], quota.per, (value) => { quota.per = value; }, (value) => `per ${value}`),
      ]),
      this.rule("quiet", quiet, "Quiet hours", [
        "from", this.time("Quiet from", quiet.start, (value) => { quiet.start = value; }),
        "to", this.time("Quiet until", quiet.end, (value) => { quiet.end = value; }),
        quiet.on && state.when !== "times" && this.face(state),
      ]),
      this.rule("different", different, "Nothing similar", [
        "within", this.select("within", ["1h", "12h", "1d", "3d", "7d", "30d"], different.within, (value) => { different.within = value; }, duration),
        h("span", {}, "nearer than"),
        this.select("nearer than", [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1], different.min, (value) => { different.min = Number(value); }, (value) => percent(Number(value))),
      ]));
  }

  rule(name, rule, text, parts) {
    const box = h("input", {
      type: "checkbox", checked: rule.on,
      onchange: () => { rule.on = box.checked; this.draw(); this.focusOn(`[data-rule="${name}"] input`); this.changed(); },
    });
    return h("div.row.rule", { "data-rule": name }, h("label.check", {}, box, text), rule.on && parts);
  }

  /** Return a field for a time. It stays while it is changed: hours and minutes are typed one after the other. */
  time(label, value, set) {
    const input = h("input", {
      type: "time", required: true, value, "aria-label": label,
      onchange: () => {
        if (!input.value) return;
        set(input.value);
        this.controls.querySelector(".clock")?.replaceWith(this.face(this.state));
        this.changed();
      },
    });
    return input;
  }

  select(label, values, value, set, text) {
    const all = values.map(String).includes(String(value)) ? values : [value, ...values];
    const select = h("select", { "aria-label": label, onchange: () => { set(select.value); this.changed(); } },
      all.map((each) => h("option", { value: each, selected: String(each) === String(value) }, text(each))));
    return select;
  }

  /** Return a slider over numbers. */
  slider(label, name, { min, max, step = 1 }, value, set, text) {
    const output = h("output.small.muted", { for: `rule-${name}` }, text(value));
    const input = h("input.wide", {
      type: "range", id: `rule-${name}`, min, max: Math.max(max, value), step, value, "aria-valuetext": text(value),
      oninput: () => {
        set(input.valueAsNumber);
        output.textContent = text(input.valueAsNumber);
        input.setAttribute("aria-valuetext", text(input.valueAsNumber));
        this.changed();
      },
    });
    return h("div.stack.tight", {}, h("div.row.spread", {}, h("label.field", { for: `rule-${name}` }, label), output), input);
  }

  /** Return a slider over steps that have names. */
  steps(label, name, values, value, set, text, more = []) {
    const all = values.includes(value) ? [...more, ...values.filter((each) => !more.includes(each))] : [value, ...values];
    return this.slider(label, name, { min: 0, max: all.length - 1 }, all.indexOf(value),
      (index) => set(all[index]), (index) => text(all[index]));
  }

  focusOn(selector) {
    this.controls.querySelector(selector)?.focus();
  }

  focusOnDigest(number) {
    this.focusOn(`[aria-label="Digest ${number}"]`);
  }

  changed() {
    this.justSaved = false;
    this.drawSaving();
    const { isSaved, policy } = this;
    this.context.remember({ policy: isSaved ? null : JSON.stringify(policy) });
    this.compare();
  }

  /** Show what the feed would have been; while one answer is awaited, only the last change counts. */
  async compare() {
    if (this.asking) {
      this.again = true;
      return;
    }
    this.asking = true;
    const { api, subscriber, signal } = this.context;
    try {
      do {
        this.again = false;
        const question = { subscriber, policy: this.policy, compare: true, limit: LISTED };
        const answer = await api.post("/v1/preview", question, signal);
        if (!this.again) this.drawResult(answer);
      } while (this.again);
    } catch (error) {
      if (signal.aborted) return;
      put(this.result, h("p.notice.bad", { role: "alert" }, error.message));
    } finally {
      this.asking = false;
    }
  }

  drawResult({ publications, comparison }) {
    const { tried, saved, timeline } = comparison;
    this.comparison = comparison;
    const figures = [
      figure("Delivered", saved.delivered, tried.delivered, count),
      figure("Mean rank", saved.mean_rank, tried.mean_rank, rank),
      figure("Variety", saved.diversity, tried.diversity, percent),
      figure("Age when sent", saved.mean_age_s, tried.mean_age_s, (value) => duration(`${Math.round(value)}s`, "short")),
      (saved.held > 0 || tried.held > 0) && figure("Held for later", saved.held, tried.held, count),
      (saved.dropped > 0 || tried.dropped > 0) && figure("Dropped by rules", saved.dropped, tried.dropped, count),
    ];
    this.list = h("ol.changes");
    this.tabs = h("div.segments", { role: "group", "aria-label": "Changes" });
    put(this.result,
      h("p.muted.small", {}, `Over the last ${counted(publications, "publication")}, of which ${count(tried.matches)} matched.`),
      h("dl.figures", {}, figures),
      timeline && barChart("When", { ...timeline, bars: timeline.tried, outline: timeline.saved, names: ["tried", "saved"] }),
      h("div.row.spread", {}, this.tabs),
      this.list);
    this.drawChanges();
    this.drawSaving(this.justSaved ? h("span.chip.good", {}, "Saved") : null);
    this.tell(comparison);
  }

  drawChanges() {
    const { comparison } = this;
    const shown = this.shown ?? ["comes", "goes", "stays"].find((name) => comparison[name].count > 0) ?? "stays";
    put(this.tabs, Object.entries(CHANGES).map(([name, text]) =>
      h("button", {
        type: "button", "aria-pressed": String(name === shown),
        onclick: () => {
          this.shown = name;
          this.context.remember({ show: name });
          this.drawChanges();
          this.tabs.querySelector(`[aria-pressed="true"]`).focus();
        },
      }, text, " ", h("span.figure", {}, count(comparison[name].count)))));
    const { items, count: total } = comparison[shown];
    put(this.list,
      items.map((delivery) => change(shown, delivery)),
      total > items.length && h("li.muted.small", {}, `and ${count(total - items.length)} earlier`),
      total === 0 && h("li.muted", {}, { comes: "Nothing new comes.", goes: "Nothing goes.", stays: "Nothing stays." }[shown]));
  }

  tell({ tried, saved, comes, goes }) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.context.announce(
      `${count(tried.delivered)} instead of ${count(saved.delivered)}: ${count(comes.count)} come, ${count(goes.count)} go`), 600);
  }

  reset() {
    this.state = readPolicy(this.saved);
    this.draw();
    this.focusOn("input");
    this.changed();
  }

  async save() {
    const { api, subscriber, announce } = this.context;
    const { policy } = this;
    const { id: _, ...form } = this.owner;
    try {
      await api.put(path`/v1/subscribers/${subscriber}`, { ...form, policy });
    } catch (error) {
      return this.drawSaving(h("span.notice.bad", { role: "alert" }, error.message));
    }
    this.owner = { ...this.owner, policy };
    this.saved = policy;
    this.state = readPolicy(policy);
    this.justSaved = true;
    this.draw();
    this.focusOn("input");
    this.drawSaving(h("span.chip.good", {}, "Saved"));
    announce("The rules are saved.");
    this.context.remember({ policy: null });
    this.compare();
  }
}

function group(title, ...children) {
  return h("fieldset.card.stack", {}, h("legend", {}, title), children);
}

function figure(name, before, after, format) {
  const [was, is] = [before, after].map((value) => (value === null ? "–" : format(value)));
  const sign = was === is || before === null || after === null ? "" : after > before ? " ▲" : " ▼";
  return h("div.card.stat", {},
    h("dt.small.muted", {}, name),
    h("dd", {},
      h("strong.figure", {}, is),
      h("span.small.muted", {}, was === is ? "as saved" : `was ${was}`, sign && h("span", { "aria-hidden": "true" }, sign))));
}

function change(kind, delivery) {
  const sign = { comes: "+", goes: "−", stays: "" }[kind];
  return h(`li.row.${kind}`, {},
    sign && h("span.sign", { "aria-label": CHANGES[kind] }, sign),
    h("span.grow.name", {}, delivery.content?.title ?? delivery.event),
    h("span.bar", { style: { "--share": Math.min(1, delivery.rank) }, "aria-hidden": "true" }),
    h("span.small.muted.figure", {}, rank(delivery.rank), " · ", moment(delivery.delivered_at)));
}
