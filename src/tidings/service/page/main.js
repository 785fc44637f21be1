// The page: who is signed in, which view the address asks for, and the frame around it.
//
// HOW TO ADD A VIEW
//   1. Write views/NAME.js with a default export:
//        { name: "rules",               the address is #/rules?subscriber=ada&more=state
//          title: "My rules",
//          icon: "M4 6h16",             the path of a 24 x 24 icon, drawn as a line
//          roles: ["subscriber", "admin"],
//          needsSubscriber: true,       it shows one subscriber, whom an admin picks
//          async show(context) {} }     returns the element to show; errors are shown for it
//   2. Import it here, and put it in VIEWS. Its style is views/NAME.css, linked from index.html.
//   3. Its story is tests/service/page/test_NAME.py.
//
// A context has: `api` (see api.js), `subscriber`, `me` ({role, subscriber, tenant}), `params` (the
// state in the address, an object of strings), `signal` (aborted when the view is left),
// `link(view, params)` (an address), `go(view, params)`, `remember(params)` (changes the address
// without showing the view again; null removes one), `announce(text)` (for screen readers),
// `notify(text)` (for everybody, for a few seconds), and `status(text, state)` (a word in the
// header: "live", "waiting" or "").
//
// Elements are made by `h` of dom.js, never from markup. Shared styles are in style.css: .card,
// .button, .button.primary, .field, .chip, .bar, .notice, .muted, .row, .stack, .segments, .table.

import { Api, Problem, Unreachable, path } from "./api.js";
import { h, put, svg } from "./dom.js";
import { session } from "./session.js";
import { signIn } from "./views/sign-in.js";
import feed from "./views/feed.js";
import interests from "./views/interests.js";
import operations from "./views/operations.js";
import reach from "./views/reach.js";
import reading from "./views/reading.js";
import rules from "./views/rules.js";

const VIEWS = [feed, interests, rules, reading, reach, operations];

const THEMES = { auto: "◐ Auto", light: "☀ Light", dark: "☾ Dark" };
const TOAST_MS = 4_000;
const [header, nav, main, announcer, toast] = ["header", "nav", "main", "announcer", "toast"].map((id) =>
  document.getElementById(id),
);
const brand = header.querySelector(".brand"); // kept, so that its picture is not fetched again
const LOOK_AGAIN_MS = 2_000;

let me = null;
let api = null;
let leaving = new AbortController();
let status = null;
let toastTimer = 0;

/** Return the view and the state that the address asks for. */
function readAddress() {
  const [, name = "", query = ""] = /^#\/([^?]*)\??(.*)$/.exec(location.hash) ?? [];
  return { name, params: Object.fromEntries(new URLSearchParams(query)) };
}

function address(name, params = {}) {
  const given = Object.entries(params).filter(
    ([, value]) => value !== null && value !== undefined && value !== "",
  );
  const query = new URLSearchParams(given).toString();
  return query ? `#/${name}?${query}` : `#/${name}`;
}

async function start() {
  leaving.abort();
  api = new Api(session.token, () => session.token !== null && signOut("The token is not valid."));
  try {
    me = await api.get("/v1/me");
  } catch (error) {
    if (error instanceof Problem && error.status === 401) return;
    return showError(error, start);
  }
  if (me.role === null) return askForToken();
  await show();
}

function askForToken(message = null) {
  me = null;
  put(header, brand, h("div.grow"), themeSwitch());
  put(nav);
  document.title = "Sign in – Tidings";
  put(
    main,
    signIn(message, (token) => ((session.token = token), start())),
  );
}

function signOut(message = null) {
  leaving.abort();
  session.token = null;
  askForToken(message);
}

async function show() {
  if (me === null) return;
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const { name, params } = readAddress();
  const allowed = VIEWS.filter((view) => view.roles.includes(me.role));
  const view = allowed.find((each) => each.name === name) ?? allowed[0];
  const subscriber =
    me.subscriber ?? params.subscriber ?? session.subscriber ?? (name ? null : await anySubscriber());
  if (me.role === "admin" && subscriber) session.subscriber = subscriber;
  drawFrame(allowed, view, subscriber);
  if (view === undefined) return put(main, h("p.notice", {}, "There is nothing to show to this token."));
  document.title = `${view.title} – Tidings`;
  if (view.needsSubscriber && !subscriber) return put(main, await choose(view));
  const context = makeContext(view, params, subscriber, signal);
  main.setAttribute("aria-busy", "true");
  try {
    const content = await view.show(context);
    if (!signal.aborted) put(main, content);
  } catch (error) {
    if (signal.aborted) return;
    if (view.needsSubscriber && me.role === "admin" && error.status === 404) {
      put(main, await choose(view, `There is no subscriber “${subscriber}”. Choose another one:`));
    } else showError(error, show);
  }
  if (!signal.aborted) main.removeAttribute("aria-busy");
}

function makeContext(view, params, subscriber, signal) {
  const state = { ...params };
  const full = (others) => ({ ...(me.role === "admin" && subscriber ? { subscriber } : {}), ...others });
  const link = (name, others = {}) => address(name, full(others));
  return {
    api,
    me,
    params,
    subscriber,
    signal,
    link,
    announce,
    go(name, others = {}) {
      if (location.hash === link(name, others)) show();
      else location.hash = link(name, others);
    },
    notify,
    remember(changes) {
      Object.assign(state, changes);
      history.replaceState(null, "", link(view.name, state));
    },
    status(text, kind = "") {
      if (!signal.aborted) put(status, text && h(`span.state.${kind || "idle"}`, {}, text));
    },
  };
}

function notify(text) {
  announce(text);
  put(toast, text).hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => {
    toast.hidden = true;
  }, TOAST_MS);
}

function announce(text) {
  announcer.textContent = "";
  requestAnimationFrame(() => {
    announcer.textContent = text;
  });
}

function drawFrame(views, current, subscriber) {
  status = h("div", { role: "status", "aria-label": "Connection" });
  put(
    header,
    brand,
    h("div.grow"),
    status,
    me.role === "admin" && current?.needsSubscriber && subscriberPicker(current, subscriber),
    me.subscriber && h("span.who", { title: "The subscriber of this token" }, me.subscriber),
    themeSwitch(),
    session.token !== null && h("button.button", { onclick: () => signOut() }, "Sign out"),
  );
  put(
    nav,
    views.map((view) =>
      h(
        "a",
        {
          href: address(view.name, me.role === "admin" && subscriber ? { subscriber } : {}),
          "aria-current": view === current ? "page" : null,
        },
        icon(view.icon),
        h("span", {}, navTitle(view.title)),
      ),
    ),
  );
}

/** Return the title of a view; on a phone there is only room for its last word. */
function navTitle(title) {
  const [last, ...before] = title.split(" ").reverse();
  if (!before.length) return title;
  return [h("span.long", {}, `${before.reverse().join(" ")} `), last];
}

function icon(path) {
  return svg("svg.icon", { viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: path }));
}

function subscriberPicker(view, subscriber) {
  const names = h("datalist", { id: "subscribers" });
  const input = h("input", {
    list: "subscribers",
    value: subscriber ?? "",
    placeholder: "Subscriber",
    autocomplete: "off",
    spellcheck: "false",
    onfocus: async () =>
      put(
        names,
        (await subscribers()).map((name) => h("option", { value: name })),
      ),
    onchange: () => {
      if (input.value) location.hash = address(view.name, { subscriber: input.value });
    },
  });
  return h("label.picker", {}, h("span", {}, "Subscriber"), input, names);
}

async function subscribers() {
  const { items } = await api.get("/v1/subscribers", { limit: 100 });
  return items.map((item) => item.id);
}

/** Return the first subscriber: whoever opens the page for the first time should see life. */
async function anySubscriber() {
  if (me.role !== "admin") return null;
  return (await subscribers().catch(() => []))[0] ?? null;
}

/** Ask an admin whose view to show. */
async function choose(view, question = "Choose a subscriber:") {
  let names = [];
  try {
    names = await subscribers();
  } catch (error) {
    return problemNotice(error, show);
  }
  if (!names.length) return firstSubscriber();
  return h(
    "section.stack",
    {},
    h("h1", {}, view.title),
    h("p.muted", { role: "status" }, question),
    h(
      "ul.choices",
      {},
      names.map((name) => h("li", {}, h("a.card", { href: address(view.name, { subscriber: name }) }, name))),
    ),
  );
}

/** Return the form for the first subscriber of a store, who then says what to look for. */
function firstSubscriber() {
  const name = h("input", { id: "first", required: true, autocomplete: "off", spellcheck: "false" });
  const problem = h("p", { role: "alert" });
  const add = async (event) => {
    event.preventDefault();
    try {
      await api.put(path`/v1/subscribers/${name.value.trim()}`, {});
      location.hash = address("interests", { subscriber: name.value.trim() });
    } catch (error) {
      put(problem, error.message);
    }
  };
  return h(
    "section.card.stack.empty",
    {},
    h("h1", {}, "No subscribers yet"),
    h("p", {}, "A subscriber is a person, or a program, with interests and a feed."),
    h(
      "form.row",
      { onsubmit: add },
      h("label.field", { for: "first" }, "Name"),
      name,
      h("button.button.primary", {}, "Add"),
    ),
    problem,
    h(
      "p.muted",
      {},
      "Or use ",
      h("a", { href: "/docs" }, "the HTTP API"),
      ", or look around first: ",
      h("code", {}, "tidings serve --demo"),
      ".",
    ),
  );
}

function themeSwitch() {
  const select = h(
    "select",
    {
      "aria-label": "Theme",
      onchange: () => {
        session.theme = select.value;
        if (select.value === "auto") delete document.documentElement.dataset.theme;
        else document.documentElement.dataset.theme = select.value;
      },
    },
    Object.entries(THEMES).map(([value, text]) =>
      h("option", { value, selected: session.theme === value }, text),
    ),
  );
  return select;
}

function showError(error, retry) {
  put(main, problemNotice(error, retry));
}

function problemNotice(error, retry) {
  const isOffline = error instanceof Unreachable;
  if (!(error instanceof Problem) && !isOffline) console.error(error);
  const notice = h(
    "section.card.stack",
    { role: "alert" },
    h("h1", {}, isOffline ? "The service cannot be reached" : "That did not work"),
    h("p", {}, isOffline ? "It may be starting; this goes on as soon as it answers." : error.message),
    h("p", {}, h("button.button.primary", { onclick: retry }, "Try again")),
  );
  if (isOffline) whenBack(notice, retry);
  return notice;
}

/** Look for the service as long as a notice is shown, and go on when it answers. */
function whenBack(notice, retry) {
  setTimeout(async () => {
    if (!notice.isConnected) return;
    const isBack = await fetch("/health").then(() => true, () => false);
    if (isBack && notice.isConnected) retry();
    else whenBack(notice, retry);
  }, LOOK_AGAIN_MS);
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address stays that of the view
  main.focus();
});
addEventListener("hashchange", show);
// What a button or a timer asks for may fail, too; whoever asked is told.
addEventListener("unhandledrejection", (event) => {
  const { reason } = event;
  if (reason instanceof Problem || reason instanceof Unreachable) notify(reason.message);
  else if (reason?.name !== "AbortError") return;
  event.preventDefault();
});
start();
