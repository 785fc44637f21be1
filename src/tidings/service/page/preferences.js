// Preferences between interests: an order of levels, or numbers.

/**
 * Return the levels of interests, the best first, by pairs [better, worse]: what nobody beats, then
 * what nobody of the rest beats, and so on (the winnow operator).
 */
export function levelsOf(names, prefers) {
  const known = new Set(names);
  const pairs = prefers.filter(([better, worse]) => known.has(better) && known.has(worse));
  const levels = [];
  let rest = [...names];
  while (rest.length) {
    const beaten = new Set(pairs.filter(([better]) => rest.includes(better)).map(([, worse]) => worse));
    const best = rest.filter((name) => !beaten.has(name));
    if (!best.length) return [...levels, rest]; // a cycle, which the service refuses
    levels.push(best);
    rest = rest.filter((name) => beaten.has(name));
  }
  return levels;
}

/** Return the pairs [better, worse] of levels: each of a level over each of the next. */
export function pairsOf(levels) {
  return levels
    .slice(1)
    .flatMap((lower, place) => levels[place].flatMap((better) => lower.map((worse) => [better, worse])));
}

/** Return the preference that a level stands for, from 1 down to 1/n. */
export const prefrankOf = (place, levels) => (levels - place) / levels;

/** Return levels in which a name stands alone, before the level at a place (of those without it). */
export function moved(levels, name, place) {
  const without = levels.map((level) => level.filter((each) => each !== name));
  const result = [...without.slice(0, place), [name], ...without.slice(place)];
  return result.filter((level) => level.length);
}

/** Return levels in which a name has joined the level above it. */
export function joined(levels, name) {
  const place = levels.findIndex((level) => level.includes(name));
  const above = levels[place - 1];
  return levels
    .map((level, at) =>
      at === place ? level.filter((each) => each !== name) : at === place - 1 ? [...above, name] : level,
    )
    .filter((level) => level.length);
}
