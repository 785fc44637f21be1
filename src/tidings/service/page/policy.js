// A policy as controls show it, and back. What no control shows is kept as it is.

// The defaults of the library, which forms leave out; a rule that is new has the zone of the browser.
const RULES = { quota: { n: 10, per: "day" }, quiet: { start: "22:00", end: "07:00" }, different: { min: 0.2, within: "7d" } };
export const PERIODS = ["10m", "30m", "1h", "2h", "3h", "6h", "12h", "1d", "7d"];
export const HALF_LIVES = [null, "10m", "30m", "1h", "2h", "6h", "12h", "1d", "3d", "7d", "30d"];
export const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Return the part of a policy as an object: a name alone is one without parameters. */
function part(form, name) {
  return form === undefined || form === null ? { name } : typeof form === "string" ? { name: form } : form;
}

/** Return the state of the controls. */
export function readPolicy(policy) {
  const window = part(policy.window, "continuous");
  const decay = part(policy.decay, "none");
  const diversify = part(policy.diversify, "none");
  const rules = (policy.rules ?? []).map((rule) => part(rule));
  const isDivrank = diversify.name === "divrank";
  return {
    base: policy,
    k: policy.k ?? 10,
    when: whenOf(window),
    length: typeof window.length === "number" && window.name === "sliding" ? window.length : 50,
    period: window.name === "periodic" && typeof window.length === "string" ? window.length : "6h",
    at: window.at?.length ? [].concat(window.at) : ["08:00", "18:00"],
    halfLife: decay.name === "none" ? null : (decay.name === "exponential" && decay.half_life) || "kept",
    variety: diversify.name === "none" ? 0 : isDivrank ? Math.round((1 - (diversify.sigma ?? 0.5)) * 10) : "kept",
    rules: Object.fromEntries(Object.entries(RULES).map(([name, usual]) => {
      const found = rules.find((rule) => rule.name === name);
      return [name, { on: found !== undefined, ...usual, ...(found ?? zoneOf(name)) }];
    })),
  };
}

function whenOf(window) {
  if (window.name === "sliding" && typeof window.length === "number") return "stream";
  if (window.name === "periodic" && window.at?.length) return "times";
  if (window.name === "periodic" && typeof window.length === "string") return "period";
  return "kept";
}

/** Return the policy that the controls describe. */
export function writePolicy(state) {
  const { decay, diversify, window, rules: _, ...rest } = state.base;
  const policy = { ...rest, k: state.k };
  const windows = {
    stream: () => ({ ...(part(window).name === "sliding" ? window : {}), name: "sliding", length: state.length }),
    period: () => ({ name: "periodic", length: state.period }),
    times: () => ({ ...(part(window).at ? window : { zone: ZONE }), name: "periodic", at: [...new Set(state.at)].sort() }),
    kept: () => window,
  };
  const set = (name, value) => { if (value !== undefined && value !== null) policy[name] = value; };
  set("window", windows[state.when]());
  set("decay", state.halfLife === "kept" ? decay : state.halfLife && { name: "exponential", half_life: state.halfLife });
  // What counts as different stays the same, also where it only measures the result.
  const distance = part(diversify).distance ? { distance: diversify.distance } : {};
  set("diversify", state.variety === "kept" ? diversify : state.variety > 0
    ? { ...distance, name: "divrank", sigma: Number((1 - state.variety / 10).toFixed(1)) }
    : distance.distance && { ...distance, name: "none" });
  const rules = writeRules(state);
  if (rules.length) policy.rules = rules;
  return policy;
}

/** Return the rules; a second one of the same name has no control, and stays. */
function writeRules({ base, rules }) {
  const seen = new Set();
  const kept = (base.rules ?? []).map((rule) => part(rule)).filter(({ name }) => seen.has(name) || !seen.add(name));
  const chosen = Object.entries(rules).filter(([, rule]) => rule.on).map(([name, { on: _, ...rule }]) => ({ ...rule, name }));
  return [...chosen, ...kept];
}

function zoneOf(rule) {
  return rule === "different" ? {} : { zone: ZONE };
}

/** Return whether two policies are the same, whatever the order of their fields. */
export function samePolicy(one, other) {
  return JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));
}

function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}
