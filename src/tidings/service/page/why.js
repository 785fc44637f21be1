// Why a publication was sent or not: predicates, rank and position, what beat it, what rules did.

import { Problem } from "./api.js";
import { h } from "./dom.js";
import { count, counted, fullTime, moment, rank } from "./format.js";
import { titleOf, written } from "./publication.js";

/** The outcomes of the API, in words and a tone. */
export const OUTCOMES = {
  delivered: ["Sent", "good"],
  unmatched: ["No interest matches", ""],
  outranked: ["Others ranked higher", ""],
  similar: ["Too similar", "warm"],
  open: ["May still come", "warm"],
  waiting: ["Waits for company", "warm"],
  expired: ["Left the window", ""],
  held: ["Held", "warm"],
  dropped: ["Dropped", "bad"],
  late: ["Came too late", "bad"],
  unknown: ["Unknown", ""],
};

/** Return the word for an outcome as a chip. */
export function outcomeChip(outcome) {
  const [word, tone] = OUTCOMES[outcome] ?? OUTCOMES.unknown;
  return h("span.chip", { class: tone }, word);
}

/** Return why; `context` is that of a view. */
export async function explain({ api, subscriber, signal, link }, event) {
  try {
    const why = await api.get("/v1/explain", { subscriber, event }, signal);
    return panel(why, link);
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 404) throw error;
    return h("p.muted", {}, "It is older than the publications that can be explained.");
  }
}

function panel(why, link) {
  const title = (id) => titleOf({ event: id, ...why.events[id] });
  return h(
    "div.why.stack",
    {},
    h("p.row", {}, outcomeChip(why.outcome), h("strong", {}, sentence(why, title))),
    why.note && why.outcome !== "late" && h("p.muted.small", {}, `Note: ${why.note}.`),
    choices(why, title),
    why.rules.length > 0 && rules(why.rules, title),
    interests(why.reasons, link),
  );
}

function sentence(why, title) {
  const { delivery, standing } = why;
  if (delivery)
    return `Sent with rank ${rank(delivery.rank)}, at position ${count(delivery.position)} of its window.`;
  if (why.rank === null) return "None of your interests matches it.";
  const ranked = `Its rank is ${rank(why.rank)}.`;
  const choice = standing?.choices.at(-1);
  const last = why.rules.at(-1);
  switch (why.outcome) {
    case "held":
      return `${ranked} The rule “${last.rule}” holds it until ${moment(last.until)}.`;
    case "dropped":
      return `${ranked} ${why.dropped ? `It was dropped: ${why.dropped}.` : `The rule “${last.rule}” dropped it.`}`;
    case "similar":
      return `${ranked} It is too similar to ${title(choice.similar_to.event)}.`;
    case "open":
      return choice?.decided_by
        ? `${ranked} Its window is open; so far ${beaten(choice)}.`
        : `${ranked} Its window is open, and it is among the best so far.`;
    case "outranked":
      return `${ranked} In the end ${beaten(choice)}.`;
    case "late":
      return `${ranked} It came after newer ones were decided, so nobody got it.`;
    case "waiting":
      return `${ranked} It waits until there are enough candidates.`;
    case "expired":
      return `${ranked} It left the window before there were enough candidates.`;
    default:
      return `${ranked} It was not sent.`;
  }
}

function beaten(choice) {
  return (
    {
      age: "newer ones rank at least as high",
      id: "others with the same rank went first",
      similarity: "it is too similar to another",
    }[choice.decided_by] ?? "others rank higher"
  );
}

/** Return the first and the last choice in which it stood; the last only, if both chose the same. */
function choices({ standing }, title) {
  const [first, last] = standing?.choices ?? [];
  if (first === undefined) return null;
  if (last === undefined) return window(first, "In its window", title);
  const chosen = (choice) => choice.chosen.map((rival) => rival.event).join("\n");
  const all = counted(standing.count, "choice");
  return [
    chosen(first) !== chosen(last) && window(first, `In the first of ${all}`, title),
    window(last, `In the last of ${all}`, title),
  ];
}

function window(choice, name, title) {
  const most = Math.max(1e-12, choice.rank, ...choice.chosen.map((rival) => rival.rank));
  const bar = (share) => h("span.bar", { style: { "--share": Math.min(1, share / most) } });
  const rival = (each) =>
    h(
      "li",
      {},
      h("span.name", {}, title(each.event)),
      bar(each.rank),
      h("span.figure", {}, rank(each.rank)),
      h(
        "span.muted.small",
        {},
        each.event === choice.similar_to?.event
          ? `distance ${rank(each.distance)}: too near`
          : `distance ${rank(each.distance)}`,
      ),
    );
  return h(
    "div.stack.tight",
    {},
    h("h3", {}, name),
    h(
      "p.small",
      {},
      `Number ${count(choice.place)} by rank of ${counted(choice.candidates, "candidate")}. Chosen:`,
    ),
    choice.chosen.length ? h("ol.rivals", {}, choice.chosen.map(rival)) : h("p.muted", {}, "nothing"),
  );
}

function rules(verdicts, title) {
  return h(
    "div.stack.tight",
    {},
    h("h3", {}, "Rules"),
    h(
      "ul.stack.tight",
      {},
      verdicts.map((verdict) =>
        h(
          "li.small",
          {},
          h("strong", {}, `${verdict.rule} ${verdict.fate} it`),
          " ",
          h("time", { datetime: verdict.at, title: fullTime(verdict.at) }, moment(verdict.at)),
          verdict.until && ` until ${moment(verdict.until)}`,
          `: ${verdict.reason}`,
          verdict.other && ` (${title(verdict.other)})`,
        ),
      ),
    ),
  );
}

function interests(reasons, link) {
  const matchingFirst = [...reasons].sort((a, b) => b.matched - a.matched).slice(0, 20);
  return h(
    "div.stack.tight",
    {},
    h("h3", {}, "Your interests"),
    h(
      "ul.reasons",
      {},
      matchingFirst.map((reason) =>
        h(
          "li",
          {},
          h("a.name", { href: link("interests", { edit: reason.subscription }) }, reason.subscription),
          h(
            "span.chip",
            { class: reason.matched ? "good" : "" },
            reason.matched ? `matches with ${rank(reason.score ?? 0)}` : "does not match",
          ),
          h(
            "ul",
            {},
            reason.holds.map((text) =>
              h("li.holds", {}, h("span.hidden", {}, "holds: "), h("code", {}, text)),
            ),
            reason.fails.map((failed) =>
              h(
                "li.fails",
                {},
                h("span.hidden", {}, "fails: "),
                h("code", {}, failed.predicate),
                " ",
                h(
                  "span.muted",
                  {},
                  failed.type === null
                    ? `there is no ${failed.attribute}`
                    : `${failed.attribute} is ${written(failed.value)}`,
                  failed.hint && `; ${failed.hint}`,
                ),
              ),
            ),
          ),
        ),
      ),
    ),
  );
}
