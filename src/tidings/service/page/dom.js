// Elements without markup. Text only ever becomes text nodes and attribute values, so nothing that
// is published can turn into elements or scripts; the content security policy forbids the rest.

const SVG = "http://www.w3.org/2000/svg";

/**
 * Return an element: `h("a.name", {href, onclick, style: {"--rank": 0.5}}, "text", child, [more])`.
 * Properties that are null, undefined or false are left out; true is an empty attribute. Children
 * that are not nodes become text.
 */
export function h(tag, properties, ...children) {
  const [name, ...classes] = tag.split(".");
  return fill(document.createElement(name), classes, properties, children);
}

/** Return an element of SVG, like `h`. */
export function svg(tag, properties, ...children) {
  const [name, ...classes] = tag.split(".");
  return fill(document.createElementNS(SVG, name), classes, properties, children);
}

/** Replace the children of an element. */
export function put(element, ...children) {
  element.replaceChildren(...nodes(children));
  return element;
}

/** Return the address if it leads to a web page by http or https; otherwise null. */
export function webAddress(text) {
  if (typeof text !== "string") return null;
  try {
    const address = new URL(text.trim());
    return ["http:", "https:"].includes(address.protocol) && address.hostname ? address.href : null;
  } catch {
    return null;
  }
}

function fill(element, classes, properties, children) {
  if (classes.length) element.classList.add(...classes);
  for (const [name, value] of Object.entries(properties ?? {})) set(element, name, value);
  element.append(...nodes(children));
  return element;
}

function set(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name === "class") element.classList.add(...value.split(" ").filter(Boolean));
  else if (name === "style") {
    for (const [key, part] of Object.entries(value)) element.style.setProperty(key, String(part));
  } else if (name === "value" || name === "checked") element[name] = value;
  else if (name === "href" && !/^(https?:\/\/|[#/])/i.test(value)) return;
  else element.setAttribute(name, value === true ? "" : String(value));
}

function nodes(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : document.createTextNode(String(child))));
}
