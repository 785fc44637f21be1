// Operations: is it well? What came, what waits, what failed, and how that went.

import { Problem } from "../api.js";
import { lineChart } from "../chart.js";
import { h, put } from "../dom.js";
import { count, counted, decimal, duration, fullTime, percent } from "../format.js";

const EVERY_MS = 5_000;
const STATES = {
  idle: ["good", "All is well. Everything that was published is decided."],
  working: ["good", "All is well. The pipeline is at work."],
  stalled: ["bad", "The pipeline takes nothing, although something waits."],
};
const KINDS = { dead: "Dead letters", late: "Late events" };

export default {
  name: "operations",
  title: "Operations",
  icon: "M3 12h4l3-8l4 16l3-8h4",
  roles: ["admin"],
  needsSubscriber: false,

  async show(context) {
    const view = new Operations(context);
    await Promise.all([view.refresh(), view.readLetters(), view.readConditions()]);
    view.keepFresh();
    return view.element;
  },
};

class Operations {
  constructor(context) {
    this.context = context;
    this.kind = context.params.letters === "late" ? "late" : "dead";
    this.state = h("p.notice", { role: "status" });
    this.figures = h("dl.figures");
    this.plots = h("div.plots");
    this.aside = h("div");
    this.letters = h("div.stack");
    this.message = null;
    this.conditions = h("div.stack");
    this.files = h("div");
    this.element = h("section.stack", {},
      h("h1", {}, "Operations"), this.state, this.figures, this.plots, this.aside, this.files,
      section("Letters", "What could not be delivered is kept here, with the reason, and can be published again.", this.letters),
      section("Conditions", "A broad condition says the least; a slow one delays every publication; one that never matches may be mistyped.", this.conditions));
  }

  async refresh() {
    const { api, signal, status } = this.context;
    try {
      this.draw(await api.get("/v1/operations", {}, signal));
      status("Up to date", "live");
    } catch (error) {
      if (signal.aborted) return;
      if (this.drawn === undefined) throw error;
      status("Connecting again", "waiting");
    }
  }

  keepFresh() {
    const { signal } = this.context;
    const timer = setInterval(() => { if (!document.hidden) this.refresh(); }, EVERY_MS);
    signal.addEventListener("abort", () => clearInterval(timer), { once: true });
  }

  draw(now) {
    const { publications, webhooks, index, letters, samples } = now;
    const [kind, text] = STATES[now.pipeline];
    this.state.className = `notice ${kind}`;
    if (this.state.textContent !== text) this.state.textContent = text;
    const waits = webhooks.outbox + webhooks.retries;
    put(this.figures,
      figure("Published", count(publications.last), `${count(publications.waiting)} waiting`),
      figure("Lag", duration(`${publications.lag_s.toFixed(1)}s`, "short"), publications.waiting ? "of the oldest that waits" : "nothing waits"),
      figure("Delivered", count(now.delivered), "so far"),
      figure("Subscribers", count(now.subscribers), counted(now.subscriptions, "subscription")),
      figure("Index", `v${count(index.applied)}`, index.applied === index.version ? "up to date" : `v${count(index.version)} is coming`),
      figure("Letters", count(letters.dead + letters.late), `${count(letters.dead)} dead, ${count(letters.late)} late`),
      figure("Webhooks", count(webhooks.total), webhooks.total ? `${count(waits)} to send, ${count(webhooks.failing + webhooks.disabled)} failing, ${count(webhooks.given_up)} given up` : "none"));
    this.drawPlots(samples);
    this.drawFiles(index.files);
    this.drawAside(now.set_aside);
    if (this.drawn && (this.drawn.dead !== letters.dead || this.drawn.late !== letters.late)) this.readLetters();
    this.drawn = letters;
  }

  /** Draw the versions of the index files, which only a pipeline on Spark has. */
  drawFiles(files) {
    put(this.files, files.length > 0 && section("Index files", "The versions that the pipeline on Spark has built; each holds a version of the subscriptions.",
      h("div.card", {}, h("table.small", {},
        h("thead", {}, h("tr", {}, ["Version", "Subscriptions as of", "Built", "Parts", "Changes since"].map((text) => h("th", { scope: "col" }, text)))),
        h("tbody", {}, files.map((file) => h("tr", {}, [`v${count(file.version)}`, `v${count(file.source)}`, fullTime(file.built_at), count(file.parts), count(file.changes)].map((text) => h("td", {}, text)))))))));
  }

  drawPlots({ times, ...samples }) {
    if (times.length < 2) {
      put(this.plots, h("p.muted", {}, "Plots begin in a few seconds: a sample is taken every five."));
      return;
    }
    const rate = (values) => rates(times, values);
    const later = times.slice(1);
    const perSecond = { format: decimal };
    put(this.plots,
      card(lineChart("Throughput, per second", later, [
        { name: "published", values: rate(samples.published), kind: "second" },
        { name: "delivered", values: rate(samples.delivered), kind: "main" },
      ], perSecond)),
      card(lineChart("Lag, in seconds", times, [{ name: "lag", values: samples.lag_s, kind: "main" }], perSecond)),
      card(lineChart("Waiting", times, [
        { name: "publications", values: samples.waiting, kind: "main" },
        { name: "to webhooks", values: samples.outbox, kind: "second" },
      ])),
      card(lineChart("Letters", times, [
        { name: "late", values: samples.late, kind: "second" },
        { name: "dead", values: samples.dead, kind: "alert" },
      ])));
  }

  drawAside({ count: total, items }) {
    put(this.aside, total > 0 && h("section.card.stack.tight", {},
      h("h2", {}, `${counted(total, "subscriber is", "subscribers are")} set aside`),
      h("ul.stack.tight", {}, items.map(({ subscriber, reason }) => h("li", {}, h("strong", {}, subscriber), ": ", reason)))));
  }

  async readLetters() {
    const { api, signal } = this.context;
    this.drawLetters(await api.get("/v1/letters", { kind: this.kind, limit: 50 }, signal));
  }

  drawLetters({ items, next }) {
    const retry = (ids, label) => h("button.button", { type: "button", onclick: () => this.retry(ids) }, label);
    put(this.letters,
      h("div.row.spread", {},
        h("div.segments", { role: "group", "aria-label": "Kind of letters" }, Object.entries(KINDS).map(([kind, text]) => h("button", {
          type: "button", "aria-pressed": String(kind === this.kind),
          onclick: async () => {
            this.kind = kind;
            this.message = null;
            this.context.remember({ letters: kind });
            await this.readLetters();
            this.letters.querySelector(`[aria-pressed="true"]`)?.focus();
          },
        }, text))),
        items.length > 1 && retry(items.map((letter) => letter.id), `Publish these ${count(items.length)} again`)),
      this.message,
      items.length === 0
        ? h("p.muted", {}, "None waits.")
        : h("div.scrolls", {}, h("table.table", {},
          h("thead", {}, h("tr", {}, ["Letter", "Reason", ""].map((text) => h("th", { scope: "col" }, text || h("span.hidden", {}, "Action"))))),
          h("tbody", {}, items.map((letter) => h("tr", {},
            h("td", {}, name(letter.record), h("details", {}, h("summary.small.muted", {}, "Record"), h("pre.code.small", {}, JSON.stringify(letter.record, null, 1)))),
            h("td", {}, letter.reason),
            h("td", {}, retry([letter.id], "Publish again"))))))),
      next !== null && h("p.muted.small", {}, "There are more; these are the oldest."));
  }

  async retry(ids) {
    const { api, announce } = this.context;
    try {
      const { published, problems } = await api.post("/v1/letters:retry", { ids });
      const text = `${counted(published, "event is", "events are")} published again`;
      announce(text);
      this.message = h(`p.notice.${problems.length ? "bad" : "good"}`, {}, text, problems.length > 0 && `; ${problems[0].detail}`);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      this.message = h("p.notice.bad", { role: "alert" }, error.message);
    }
    await this.readLetters();
    this.letters.querySelector("button")?.focus();
    await this.refresh();
  }

  async readConditions() {
    const { api, signal } = this.context;
    const { publications, broad, slow, unmatched } = await api.get("/v1/operations/conditions", { limit: 8 }, signal);
    if (publications === 0) {
      put(this.conditions, h("p.muted", {}, "Nothing was published yet."));
      return;
    }
    const share = ({ matches }) => matches / publications;
    const most = Math.max(...slow.map(({ microseconds }) => microseconds), 1e-9);
    put(this.conditions,
      h("div.card.stack.tight", {}, h("h3", {}, "The broadest"),
        h("ol", {}, broad.map((item) => condition(item,
          h("span.bar", { style: { "--share": share(item) }, "aria-hidden": "true" }),
          h("span.figure.small", {}, percent(share(item))))))),
      h("div.card.stack.tight", {}, h("h3", {}, "The slowest"),
        h("ol", {}, slow.map((item) => condition(item,
          h("span.bar", { style: { "--share": item.microseconds / most }, "aria-hidden": "true" }),
          h("span.figure.small", { title: "Processor time for one publication" }, `${item.microseconds.toFixed(1)} µs`))))),
      h("div.card.stack.tight", {}, h("h3", {}, unmatched.count ? `${counted(unmatched.count, "subscription")} without a match` : "Every subscription has a match"),
        h("ol", {}, unmatched.items.map((item) => condition(item, item.hint && h("span.small.warm-text", {}, item.hint))))),
      h("p.small.muted", {}, `Over the last ${counted(publications, "publication")}.`));
  }
}

function section(title, text, ...children) {
  return h("section.stack", {}, h("div.stack.tight", {}, h("h2", {}, title), h("p.muted.small", {}, text)), children);
}

function card(content) {
  return h("div.card", {}, content);
}

function figure(title, value, more) {
  return h("div.card.stat", {}, h("dt.small.muted", {}, title),
    h("dd", {}, h("strong.figure", {}, value), h("span.small.muted", {}, more)));
}

function condition(item, ...more) {
  return h("li.row.condition", {}, h("div.grow", {}, h("strong", {}, item.subscription),
    h("div.code.small.muted", {}, item.where ?? JSON.stringify(item.any))), more);
}

function name(record) {
  const title = record?.content?.title ?? record?.id;
  return typeof title === "string" ? title : JSON.stringify(record).slice(0, 80);
}

/** Return how much each value rose, per second. */
function rates(times, values) {
  return values.slice(1).map((value, index) => {
    const seconds = (new Date(times[index + 1]) - new Date(times[index])) / 1000;
    return seconds > 0 ? Math.max(0, value - values[index]) / seconds : 0;
  });
}
