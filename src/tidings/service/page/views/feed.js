// My feed: what was sent, live, and what was not; and why.

import { path } from "../api.js";
import { h, put } from "../dom.js";
import { count, counted, fullTime, moment, rank } from "../format.js";
import { hasPicture, pictureOf, summaryOf, titleLink, titleOf } from "../publication.js";
import { session } from "../session.js";
import { explain, outcomeChip } from "../why.js";

const PAGE = 100;
const MOST = 2_000;
const SHOWN = [
  ["sent", "Sent"],
  ["unsent", "Not sent"],
  ["unmatched", "Not matched"],
];

export default {
  name: "feed",
  title: "My feed",
  icon: "M4 7h16M4 12h11M4 17h7",
  roles: ["subscriber", "admin"],
  needsSubscriber: true,

  async show(context) {
    const shown = SHOWN.some(([name]) => name === context.params.show) ? context.params.show : "sent";
    const tabs = h(
      "div.segments",
      { role: "navigation", "aria-label": "What to show" },
      SHOWN.map(([name, text]) =>
        h(
          "a",
          {
            href: context.link("feed", { show: name === "sent" ? null : name }),
            "aria-current": name === shown ? "page" : null,
          },
          text,
        ),
      ),
    );
    const tools = h("div.row");
    const body = shown === "sent" ? await sent(context, tools) : await decisions(context, shown, tools);
    return h("section.stack.feed", {}, h("div.row.spread", {}, h("h1", {}, "My feed"), tools), tabs, body);
  },
};

/** Show notifications, the newest first, and new ones as they come. */
async function sent(context, tools) {
  const { api, subscriber, signal, params } = context;
  const base = path`/v1/notifications/${subscriber}`;
  const { inbox } = await api.get(base, { after: 0, limit: 1 }, signal);
  const state = { last: inbox.last, read: inbox.read, oldest: inbox.last + 1, most: 1 };
  const list = h("ol.items", { "aria-label": "Sent, newest first" });
  const older = h("button.button", { onclick: () => more(PAGE) }, "Show older");
  const empty = h(
    "div.card.stack.empty",
    {},
    h("h2", {}, "Nothing yet"),
    h("p.muted", {}, "What fits your interests best comes here, live."),
    h("p", {}, h("a", { href: context.link("interests") }, "My interests")),
  );
  const pill = h("button.button.primary.pill", {
    hidden: true,
    onclick: () =>
      scrollTo({
        top: 0,
        behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth",
      }),
  });
  let unseen = 0;

  function add(delivery, where) {
    if (delivery.rank > state.most) list.style.setProperty("--most", String((state.most = delivery.rank)));
    list[where](
      item(context, delivery, { actions: readButton(delivery), unread: delivery.sequence > state.read }),
    );
  }

  function readButton(delivery) {
    return h(
      "button.button.plain.mark",
      {
        "aria-label": `Mark as read up to ${titleOf(delivery)}`,
        onclick: () => markRead(delivery.sequence),
      },
      "Mark read",
    );
  }

  async function more(wanted) {
    const after = Math.max(0, state.oldest - 1 - wanted);
    let [at, items] = [after, []];
    while (at < state.oldest - 1) {
      const page = await api.get(base, { after: at, limit: Math.min(1_000, state.oldest - 1 - at) }, signal);
      const fresh = page.items.filter((delivery) => delivery.sequence < state.oldest);
      if (!fresh.length) break;
      items.push(...fresh);
      at = fresh.at(-1).sequence;
    }
    items.reverse().forEach((delivery) => add(delivery, "append"));
    state.oldest = after + 1;
    older.hidden = after === 0;
    empty.hidden = list.childElementCount > 0;
    if (list.childElementCount > PAGE) context.remember({ count: list.childElementCount });
  }

  async function markRead(sequence) {
    const answer = await api.post(`${base}/read`, { sequence });
    state.read = answer.read;
    for (const each of list.children)
      each.classList.toggle("unread", Number(each.dataset.sequence) > state.read);
    drawTools();
    context.announce(answer.unread ? `${counted(answer.unread, "unread")}` : "All read");
  }

  function drawTools() {
    const unread = state.last - state.read;
    put(
      tools,
      h(
        "span.chip",
        { class: unread > 0 ? "good" : "", "aria-live": "off" },
        unread > 0 ? `${count(unread)} unread` : "All read",
      ),
      unread > 0 && h("button.button", { onclick: () => markRead(state.last) }, "Mark all as read"),
      picturesSwitch(list),
    );
  }

  function arrive(delivery) {
    if (delivery.sequence <= state.last) return;
    state.last = delivery.sequence;
    add(delivery, "prepend");
    list.firstElementChild.classList.add("new");
    empty.hidden = true;
    while (list.childElementCount > MOST) list.lastElementChild.remove();
    drawTools();
    context.announce(`New: ${titleOf(delivery)}`);
    if (scrollY > 200) {
      unseen += 1;
      put(pill, `↑ ${count(unseen)} new`).hidden = false;
    }
  }

  addEventListener(
    "scroll",
    () => {
      if (scrollY < 100 && unseen) [unseen, pill.hidden] = [0, true];
    },
    { passive: true, signal },
  );
  await more(Math.min(MOST, Number(params.count) || PAGE));
  drawTools();
  api.follow(`${base}/stream`, state.last, {
    signal,
    onEvent: arrive,
    onState: (word) => context.status(word === "live" ? "Live" : "Connecting again", word),
  });
  return h("div.stack", {}, pill, empty, list, h("p.row.center", {}, older));
}

function picturesSwitch(list) {
  const box = h("input", {
    type: "checkbox",
    checked: session.pictures,
    onchange: () => {
      session.pictures = box.checked;
      dispatchEvent(new HashChangeEvent("hashchange"));
    },
  });
  const any = () => [...list.children].some((each) => each.hasAttribute("data-picture"));
  return any() && h("label.check", { title: "They are loaded from the publishers' sites" }, box, "Pictures");
}

/** Show what became of recent publications that were not sent, a page at a time. */
async function decisions(context, show, tools) {
  const { api, subscriber, signal } = context;
  const list = h("ol.items", { "aria-label": "Not sent, newest first" });
  const older = h("button.button", { onclick: more }, "Show older");
  let before = null;

  async function more() {
    const page = await api.get(path`/v1/decisions/${subscriber}`, { show, before, limit: 20 }, signal);
    before = page.next;
    older.hidden = before === null;
    list.append(...page.items.map((decision) => item(context, decision, { outcome: true })));
    return page;
  }

  put(tools, h("button.button", { onclick: () => context.go("feed", { show }) }, "Refresh"));
  const { publications } = await more();
  if (!list.childElementCount) {
    return h(
      "div.card.stack.empty",
      {},
      h("h2", {}, publications ? "Nothing was kept from you" : "Nothing was published yet"),
      h(
        "p.muted",
        {},
        show === "unsent"
          ? "Everything that fits your interests was sent."
          : "Every recent publication fits one of your interests.",
      ),
    );
  }
  return h(
    "div.stack",
    {},
    h(
      "p.muted",
      {},
      show === "unsent"
        ? `What fits your interests and was not sent, of the last ${counted(publications, "publication")}.`
        : `What none of your interests matches, of the last ${counted(publications, "publication")}.`,
    ),
    list,
    h("p.row.center", {}, older),
  );
}

/** Return a publication with its rank, its interests, and a button that tells why. */
function item(context, publication, { outcome = false, unread = false, actions = null }) {
  const time = publication.delivered_at ?? publication.published_at;
  const summary = summaryOf(publication);
  const panel = h("div.panel", { hidden: true });
  const button = h(
    "button.button.plain",
    {
      "aria-expanded": "false",
      "aria-label": `Why: ${titleOf(publication)}`,
      onclick: () => toggle(),
    },
    outcome ? "Why not?" : "Why?",
  );

  async function toggle() {
    const opens = panel.hidden;
    button.setAttribute("aria-expanded", String(opens));
    panel.hidden = !opens;
    context.remember({ why: opens ? publication.event : null });
    if (!opens || panel.childElementCount) return;
    put(panel, h("p.muted", {}, "…"));
    try {
      put(panel, await explain(context, publication.event));
    } catch (error) {
      if (!context.signal.aborted) put(panel, h("p.notice.bad", { role: "alert" }, error.message));
    }
  }

  if (context.params.why === publication.event) toggle();
  const shown = publication.rank === null ? null : rank(publication.rank);
  return h(
    "li.item.card",
    {
      class: unread ? "unread" : "",
      "data-sequence": publication.sequence ?? null,
      "data-event": publication.event,
      "data-picture": hasPicture(publication),
    },
    pictureOf(publication),
    h(
      "div.body",
      {},
      h("h2", {}, unread && h("span.hidden", {}, "Unread: "), titleLink(publication)),
      summary && h("p.summary", {}, summary),
      h(
        "div.row.facts",
        {},
        outcome && outcomeChip(publication.outcome),
        publication.matched.map((name) =>
          h(
            "a.chip",
            { href: context.link("interests", { edit: name }), title: "The interest that matches" },
            name,
          ),
        ),
        h("time.muted.small", { datetime: time, title: fullTime(time) }, moment(time)),
        publication.until && h("span.small", {}, `until ${moment(publication.until)}`),
        h("span.grow"),
        actions,
        button,
      ),
    ),
    shown &&
      h(
        "div.rank",
        { title: `Rank ${publication.rank}` },
        h("span.figure", {}, h("span.hidden", {}, "Rank "), shown),
        h("span.bar", { class: outcome ? "quiet" : "", style: { "--rank": publication.rank } }),
      ),
    panel,
  );
}
