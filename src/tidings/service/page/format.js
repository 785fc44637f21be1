// Numbers and times, in the language of the browser.

const LOCALE = undefined;
const WHOLE = new Intl.NumberFormat(LOCALE);
const RANK = new Intl.NumberFormat(LOCALE, { maximumSignificantDigits: 3 });
const DECIMAL = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 1 });
const PERCENT = new Intl.NumberFormat(LOCALE, { style: "percent", maximumFractionDigits: 1 });
const CLOCK = new Intl.DateTimeFormat(LOCALE, { timeStyle: "short" });
const DAY = new Intl.DateTimeFormat(LOCALE, { dateStyle: "medium" });
const FULL = new Intl.DateTimeFormat(LOCALE, { dateStyle: "full", timeStyle: "medium" });
const RELATIVE = new Intl.RelativeTimeFormat(LOCALE, { numeric: "auto" });
const UNITS = [
  ["second", 60],
  ["minute", 60],
  ["hour", 24],
  ["day", 7],
];

export const count = (number) => WHOLE.format(number);
export const rank = (number) => RANK.format(number);
export const decimal = (number) => DECIMAL.format(number);
export const percent = (share) => PERCENT.format(share);
export const fullTime = (text) => FULL.format(new Date(text));

/** Return a text with a capital first letter. */
export const capitalized = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** Return `1 film`, `2 films`. */
export const counted = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

/** Return how long ago a time is, or its day if that is more than a week. */
export function ago(text, now = Date.now()) {
  const time = new Date(text);
  let amount = (time.getTime() - now) / 1000;
  for (const [unit, size] of UNITS) {
    if (Math.abs(amount) < size) return RELATIVE.format(Math.round(amount), unit);
    amount /= size;
  }
  return DAY.format(time);
}

/** Return the clock of a time today, and otherwise its day too. */
export function moment(text) {
  const time = new Date(text);
  const today = new Date().toDateString() === time.toDateString();
  return today ? CLOCK.format(time) : `${DAY.format(time)}, ${CLOCK.format(time)}`;
}

const DURATION_UNITS = { s: "second", m: "minute", h: "hour", d: "day", w: "week" };
const STEPS = [
  [1, "s"],
  [60, "m"],
  [3600, "h"],
  [86400, "d"],
];

/** Return a duration such as `90m` in words: the largest unit that leaves little out. */
export function duration(text, display = "long") {
  const [, amount, unit] = /^([\d.]+)(ms|s|m|h|d|w)$/.exec(text) ?? [];
  if (!unit || !DURATION_UNITS[unit]) return String(text);
  const seconds = amount * { s: 1, m: 60, h: 3600, d: 86400, w: 604800 }[unit];
  const [size, short] = STEPS.findLast(([each]) => seconds >= each) ?? STEPS[0];
  const style = {
    style: "unit",
    unit: DURATION_UNITS[short],
    unitDisplay: display,
    maximumFractionDigits: 1,
  };
  return new Intl.NumberFormat(LOCALE, style).format(seconds / size);
}

/** Return the name of a part of a policy. */
export const words = (part) => (typeof part === "string" ? part : (part?.name ?? "none"));
