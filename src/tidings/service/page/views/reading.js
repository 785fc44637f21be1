// Where I read: addresses of mail and chats, verified by a code; paused, resumed and removed.

import { path } from "../api.js";
import { h, put } from "../dom.js";
import { counted } from "../format.js";

const KINDS = { mail: "Mail", slack: "Slack", teams: "Teams" };
const PLACES = {
  mail: "ada@example.org",
  slack: "https://hooks.slack.com/services/…",
  teams: "https://….webhook.office.com/…",
};
const EVERY = { delivery: "At once", hour: "Every hour", day: "Every day" };

export default {
  name: "reading",
  title: "Where I read",
  icon: "M4 6h16v12H4zM4 7l8 6l8-6",
  roles: ["subscriber", "admin"],
  needsSubscriber: true,

  async show(context) {
    const view = new Reading(context);
    await view.load();
    return view.element;
  },
};

class Reading {
  constructor(context) {
    this.context = context;
    this.base = path`/v1/subscribers/${context.subscriber}/channels`;
    this.list = h("ul.stack.plain", { "aria-label": "Where I read" });
    this.problem = h("p.notice", { role: "alert", hidden: true });
    this.adding = h("div");
    this.element = h("section.stack", {},
      h("div.stack.tight", {}, h("h1", {}, "Where I read"),
        h("p.muted", {}, "Each address gets nothing but a code until you confirm it.")),
      this.problem, this.list, this.adding);
  }

  async load() {
    const { items, kinds } = await this.context.api.get(this.base, {}, this.context.signal);
    if (!this.adding.hasChildNodes()) put(this.adding, this.form(kinds));
    put(this.list, items.length ? items.map((channel) => this.item(channel)) : h("li.card.stack.tight.muted", {},
      "No address yet. Your feed is always on this page; with an address, it also comes to you."));
  }

  /** Do something with the service, then show what came of it, with the focus where it goes on. */
  async run(work, done, focus = () => null) {
    this.problem.hidden = true;
    try {
      await work();
      await this.load();
      focus()?.focus();
      this.context.notify(done);
    } catch (error) {
      put(this.problem, error.message).hidden = false;
    }
  }

  item(channel) {
    const { api } = this.context;
    const address = `${this.base}/${encodeURIComponent(channel.id)}`;
    const act = (verb, label, done) =>
      h("button.button", { type: "button", "aria-label": `${label} ${channel.id}`,
        onclick: () => this.run(() => api.post(`${address}/${verb}`), done, () => this.control(channel, verb)) }, label);
    const item = h("li.card.stack.tight", { "data-channel": channel.id },
      h("div.row", {}, h("strong", {}, channel.address), h("span.chip", {}, KINDS[channel.kind]), h("span.chip", {}, state(channel))),
      h("p.muted.small", {}, when(channel)),
      h("div.row", {},
        channel.verified ? null : act("code", "Send a code", "The code is on its way."),
        channel.verified ? null : this.confirmation(channel, address),
        channel.paused ? act("resume", "Resume", "It goes on with what comes now.") : act("pause", "Pause", "Paused."),
        channel.failed.length ? act("retry", "Send again", "It is sent again.") : null,
        h("button.button", { type: "button", "aria-label": `Remove ${channel.id}`,
          onclick: () => this.remove(item, address) }, "Remove")));
    return item;
  }

  /** Remove an address; the focus moves to the next one, or to the form. */
  remove(item, address) {
    const place = [...this.list.children].indexOf(item);
    this.run(() => this.context.api.delete(address), "Removed.", () => {
      const items = this.list.querySelectorAll("[data-channel]");
      return items.length ? items[Math.min(place, items.length - 1)].querySelector("button:last-child") : this.adding.querySelector("input");
    });
  }

  /** Return what the reader of an address does next after something was done with it. */
  control(channel, verb) {
    const item = [...this.list.children].find((each) => each.dataset.channel === channel.id);
    return (verb === "code" && item?.querySelector("input")) || item?.querySelector("button");
  }

  confirmation(channel, address) {
    const code = h("input", { required: true, autocomplete: "one-time-code", "aria-label": `Code for ${channel.id}`, placeholder: "Code" });
    const confirm = (event) => {
      event.preventDefault();
      const verify = () => this.context.api.post(`${address}/verify`, { code: code.value });
      this.run(verify, "The address is confirmed.", () => this.control(channel, "verify"));
    };
    return h("form.row", { onsubmit: confirm }, code, h("button.button.primary", {}, "Confirm"));
  }

  form(kinds) {
    const kind = select("Kind", Object.fromEntries(kinds.map((name) => [name, KINDS[name]])));
    const every = select("When", EVERY, "day");
    const address = h("input", { required: true, size: 34 });
    const time = h("input", { type: "time", value: "08:00", required: true });
    const at = field("At", time);
    const adapt = () => {
      address.placeholder = PLACES[kind.value];
      at.hidden = every.value !== "day";
    };
    kind.addEventListener("change", adapt);
    every.addEventListener("change", adapt);
    adapt();
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    const add = (event) => {
      event.preventDefault();
      const form = { kind: kind.value, address: address.value.trim(), every: every.value, zone };
      if (every.value === "day") form.at = [time.value];
      const id = `${kind.value}-${Date.now().toString(36)}`;
      this.run(() => this.context.api.put(`${this.base}/${id}`, form), "Added. Send a code to confirm it.", () => this.control({ id }, "put"));
    };
    return h("form.card.stack", { onsubmit: add, "aria-label": "Add an address" },
      h("h2", {}, "Add an address"),
      h("div.row.low", {}, field("Kind", kind), field("Address", address), field("When", every), at,
        h("button.button.primary", {}, "Add")));
  }
}

function select(label, words, chosen = null) {
  return h("select", { "aria-label": label }, Object.entries(words).map(([value, word]) =>
    h("option", { value, selected: value === chosen }, word)));
}

function field(label, input) {
  return h("label.field.over", {}, h("span", {}, label), input);
}

function state(channel) {
  if (channel.disabled) return `Off: ${channel.disabled}`;
  if (!channel.verified) return "Not confirmed";
  if (channel.paused) return "Paused";
  return channel.failures ? `Failing: ${channel.reason}` : "On";
}

function when(channel) {
  const times = channel.every === "day" ? `Every day at ${channel.at.join(", ")}, ${channel.zone}` : EVERY[channel.every];
  const ranks = [channel.min_rank ? `from rank ${channel.min_rank}` : null, channel.below_rank ? `below rank ${channel.below_rank}` : null];
  return [times, ...ranks.filter(Boolean), `${counted(channel.sent, "notification", "notifications")} sent`].join(" · ");
}
