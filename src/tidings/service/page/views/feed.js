// My feed: what was sent, live.

import { path } from "../api.js";
import { h } from "../dom.js";
import { moment, rank } from "../format.js";

export default {
  name: "feed",
  title: "My feed",
  icon: "M4 7h16M4 12h11M4 17h7",
  roles: ["subscriber", "admin"],
  needsSubscriber: true,

  async show({ api, subscriber, signal, status }) {
    const page = await api.get(path`/v1/notifications/${subscriber}`, {}, signal);
    const list = h("ol.stack", {}, page.items.map(item).reverse());
    api.follow(path`/v1/notifications/${subscriber}/stream`, page.inbox.last, {
      signal,
      onEvent: (delivery) => list.prepend(item(delivery)),
      onState: (state) => status(state === "live" ? "Live" : "Connecting again", state),
    });
    return h("section.stack", {}, h("h1", {}, "My feed"), list);
  },
};

function item(delivery) {
  return h("li.card.stack.tight", {},
    h("h2", {}, delivery.content?.title ?? delivery.event),
    h("p.muted.small", {}, rank(delivery.rank), " · ", moment(delivery.delivered_at)),
    h("span.bar", { style: { "--share": Math.min(1, delivery.rank) } }));
}
