// Signing in with a token.

import { h } from "../dom.js";

/** Return the form that asks for a token; `use(token)` is called with it. */
export function signIn(message, use) {
  const token = h("input.wide", {
    id: "token",
    type: "password",
    autocomplete: "off",
    spellcheck: "false",
    required: true,
  });
  return h(
    "section.card.stack.narrow",
    {},
    h("h1", {}, "Sign in"),
    message && h("p.notice", { role: "alert" }, message),
    h(
      "form.stack",
      { onsubmit: (event) => (event.preventDefault(), token.value.trim() && use(token.value.trim())) },
      h("label.field", { for: "token" }, "Token"),
      token,
      h(
        "p.muted",
        {},
        "It begins with ",
        h("code", {}, "tidings_"),
        ", and is kept until this tab is closed. Operators make one with ",
        h("code", {}, "tidings token create STORE --role subscriber --subscriber NAME"),
        ".",
      ),
      h("button.button.primary", {}, "Sign in"),
    ),
  );
}
