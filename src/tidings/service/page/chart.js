// Plots as inline SVG. They are pictures for the eye; whoever cannot see them reads their title and
// the figures beside them.

import { h, svg } from "./dom.js";
import { count, moment } from "./format.js";

const WIDTH = 600;

/**
 * Return a plot of lines over time: `series` is a list of {name, values, kind}, where `kind` is a
 * class: "main", "second" or "alert". Values of the same index are of the same time.
 */
export function lineChart(title, times, series, { format = count, height = 120 } = {}) {
  const top = Math.max(0, ...series.flatMap(({ values }) => values)) || 1;
  const x = (index) => (times.length < 2 ? WIDTH : (index / (times.length - 1)) * WIDTH);
  const y = (value) => height - 2 - (value / top) * (height - 6);
  const lines = series.flatMap(({ values, kind }) => {
    const points = values.map((value, index) => `${x(index).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
    const area = kind === "main" && values.length > 1 &&
      svg("polygon.area", { points: `0,${height} ${points} ${WIDTH},${height}` });
    return [area, svg(`polyline.line.${kind}`, { points })];
  });
  const last = series.map(({ name, values }) => `${name} ${format(values.at(-1) ?? 0)}`).join(", ");
  return h("figure.chart", {},
    h("figcaption.row.spread", {}, h("span.field", {}, title), legend(series, format)),
    h("div.plot", {},
      frame(height, `${title}: ${last}; at most ${format(top)}`, lines),
      h("span.top.small.muted", { "aria-hidden": "true" }, `max ${format(top)}`)),
    times.length > 0 && axis(times[0], times.at(-1)));
}

/**
 * Return a plot of two counts in the same intervals of time: bars for the one, outlines for the
 * other.
 */
export function barChart(title, { start, seconds, bars, outline, names }) {
  const height = 96;
  const top = Math.max(1, ...bars, ...outline);
  const step = WIDTH / bars.length;
  const tall = (value) => (value / top) * (height - 4);
  const filled = bars.map((value, index) => svg("rect.filled", {
    x: (index * step + 1).toFixed(1), width: (step - 2).toFixed(1),
    y: (height - tall(value)).toFixed(1), height: tall(value).toFixed(1), rx: 2,
  }));
  const points = outline.flatMap((value, index) => {
    const level = (height - tall(value)).toFixed(1);
    return [`${(index * step).toFixed(1)},${level}`, `${((index + 1) * step).toFixed(1)},${level}`];
  });
  const sums = [bars, outline].map((values) => values.reduce((sum, value) => sum + value, 0));
  const words = `${title}: ${names[0]} ${count(sums[0])}, ${names[1]} ${count(sums[1])}`;
  const end = new Date(new Date(start).getTime() + seconds * bars.length * 1000).toISOString();
  return h("figure.chart", {},
    h("figcaption.row.spread", {}, h("span.field", {}, title),
      h("span.row.small.muted", {}, h("span.key.main", {}, names[0]), h("span.key.second", {}, names[1]))),
    h("div.plot", {}, frame(height, words, [filled, svg("polyline.line.second", { points: points.join(" ") })])),
    axis(start, end));
}

/** Return the face of a 24-hour clock, with an arc that is quiet and marks at times. */
export function clockFace({ quiet = null, marks = [] }) {
  const angle = (text) => {
    const [hours, minutes] = text.split(":").map(Number);
    return ((hours * 60 + minutes) / 1440) * 2 * Math.PI;
  };
  const at = (turn, radius) => [50 + radius * Math.sin(turn), 50 - radius * Math.cos(turn)].map((each) => each.toFixed(2));
  const ticks = Array.from({ length: 24 }, (_, hour) => {
    const turn = (hour / 24) * 2 * Math.PI;
    const [[x1, y1], [x2, y2]] = [at(turn, hour % 6 ? 41 : 38), at(turn, 44)];
    return svg("line.tick", { x1, y1, x2, y2 });
  });
  const arc = quiet && quiet.start !== quiet.end && (() => {
    const [from, to] = [angle(quiet.start), angle(quiet.end)];
    const isLong = (to - from + 2 * Math.PI) % (2 * Math.PI) > Math.PI ? 1 : 0;
    return svg("path.quiet", { d: `M${at(from, 31).join(" ")}A31 31 0 ${isLong} 1 ${at(to, 31).join(" ")}` });
  })();
  const dots = marks.filter(Boolean).map((text) => {
    const [cx, cy] = at(angle(text), 31);
    return svg("circle.mark", { cx, cy, r: 4 });
  });
  const words = [[50, 32, "0"], [72, 53, "6"], [50, 74, "12"], [28, 53, "18"]].map(([x, y, text]) =>
    svg("text.hour", { x, y, "text-anchor": "middle" }, text));
  return svg("svg.clock", { viewBox: "0 0 100 100", "aria-hidden": "true" }, ticks, arc || [], dots, words);
}

function frame(height, words, children) {
  return svg("svg", {
    viewBox: `0 0 ${WIDTH} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": words,
  }, svg("line.base", { x1: 0, x2: WIDTH, y1: height - .5, y2: height - .5 }), children);
}

function legend(series, format) {
  return h("span.row.small.muted", {}, series.map(({ name, values, kind }) =>
    h(`span.key.${kind}`, {}, name, " ", h("strong.figure", {}, format(values.at(-1) ?? 0)))));
}

function axis(first, last) {
  return h("div.row.spread.small.muted", {}, h("span", {}, moment(first)), h("span", {}, moment(last)));
}
