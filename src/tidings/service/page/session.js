// What the browser remembers: the token until the tab is closed, choices of appearance for longer.
// Where storage is forbidden, everything lives as long as the page.

const memory = new Map();

function read(storage, key) {
  try {
    return globalThis[storage].getItem(`tidings.${key}`);
  } catch {
    return memory.get(key) ?? null;
  }
}

function write(storage, key, value) {
  try {
    if (value === null) globalThis[storage].removeItem(`tidings.${key}`);
    else globalThis[storage].setItem(`tidings.${key}`, value);
  } catch {
    memory.set(key, value);
  }
}

export const session = {
  get token() {
    return read("sessionStorage", "token");
  },
  set token(value) {
    write("sessionStorage", "token", value);
  },
  /** The subscriber that an admin looked at last. */
  get subscriber() {
    return read("sessionStorage", "subscriber");
  },
  set subscriber(value) {
    write("sessionStorage", "subscriber", value);
  },
  get theme() {
    return read("localStorage", "theme") ?? "auto";
  },
  set theme(value) {
    write("localStorage", "theme", value);
  },
  /** Whether pictures of publications are loaded, from wherever they are. */
  get pictures() {
    return read("localStorage", "pictures") === "yes";
  },
  set pictures(value) {
    write("localStorage", "pictures", value ? "yes" : null);
  },
};
