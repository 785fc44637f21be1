// A publication as a person sees it: title, link, summary and picture from the usual fields of its
// content, or its id and attributes where it has none.

import { h, webAddress } from "./dom.js";
import { session } from "./session.js";

const TITLES = ["title", "name", "headline"];
const LINKS = ["link", "url"];
const SUMMARIES = ["summary", "description", "text"];
const PICTURES = ["image", "picture", "thumbnail", "poster"];
const LONGEST = { title: 300, summary: 600 };

const first = (content, names) =>
  names.map((name) => content?.[name]).find((value) => typeof value === "string" && value.trim()) ?? null;

/** Return the title of a publication: {event, content, attributes}. */
export function titleOf({ event, content }) {
  return (first(content, TITLES) ?? event).slice(0, LONGEST.title);
}

/** Return the title as a link, if there is one by http or https. */
export function titleLink(publication) {
  const address = webAddress(first(publication.content, LINKS));
  const title = titleOf(publication);
  return address
    ? h("a", { href: address, rel: "noopener noreferrer nofollow", target: "_blank" }, title)
    : title;
}

/** Return the summary, or the attributes in a line, without one that is shown as the title. */
export function summaryOf({ content, attributes }) {
  const summary = first(content, SUMMARIES);
  if (summary) return summary.slice(0, LONGEST.summary);
  const listed = Object.entries(attributes ?? {})
    .filter(([name]) => !TITLES.includes(name) || !first(content, TITLES))
    .map(([name, value]) => `${name} ${written(value)}`);
  return listed.length ? listed.join(" · ").slice(0, LONGEST.summary) : null;
}

/** Return whether a publication has a picture that may be shown. */
export const hasPicture = ({ content }) => pictureAddress(content) !== null;

/** Return the picture, if there is one and its reader wants pictures: they come from elsewhere. */
export function pictureOf({ content }) {
  const address = session.pictures ? pictureAddress(content) : null;
  if (!address) return null;
  const image = h("img.picture", {
    src: address,
    alt: "",
    loading: "lazy",
    decoding: "async",
    referrerpolicy: "no-referrer",
  });
  image.addEventListener("error", () => image.remove());
  return image;
}

/** Return a value of an attribute as text. */
export function written(value) {
  if (Array.isArray(value)) return value.map(written).join(", ");
  if (value !== null && typeof value === "object") return value.time ?? JSON.stringify(value);
  return String(value);
}

function pictureAddress(content) {
  const address = webAddress(first(content, PICTURES));
  return address?.startsWith("https:") ? address : null;
}
