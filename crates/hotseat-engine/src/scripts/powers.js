// Globals that scripts have besides the language, subject to the grants of the project. Loaded when a script uses one.
(function (host, parse, say) {
  "use strict";
  const Process = (name, ...values) => {
    const { value, said } = host.process(name, values);
    for (const line of said) say(line);
    return value;
  };

  const { read, write, append, exists, list, remove } = host;
  const files = Object.freeze({
    read: (path) => read(path),
    write: (path, text) => write(path, text),
    append: (path, text) => append(path, text),
    exists: (path) => exists(path),
    list: (path = ".") => list(path),
    remove: (path) => remove(path),
  });

  const names = host.names();
  const env = new Proxy({}, {
    get: (_, name) => (typeof name === "symbol" ? undefined : (host.env(name) ?? undefined)),
    has: (_, name) => names.includes(name),
    ownKeys: () => names,
    getOwnPropertyDescriptor: (_, name) =>
      names.includes(name) ? { value: host.env(name), enumerable: true, configurable: true } : undefined,
    set: () => {
      throw new TypeError("the environment cannot be changed");
    },
    deleteProperty: () => {
      throw new TypeError("the environment cannot be changed");
    },
  });
  const process = Object.freeze({ env });

  function pairs(headers) {
    if (headers === undefined || headers === null) return [];
    const entries = Array.isArray(headers)
      ? headers
      : typeof headers.entries === "function" ? [...headers.entries()] : Object.entries(headers);
    return entries.map(([name, value]) => [String(name), String(value)]);
  }

  class Headers {
    #all;
    constructor(headers) {
      this.#all = pairs(headers).map(([name, value]) => [name.toLowerCase(), value]);
    }
    get(name) {
      const found = this.#all.filter(([own]) => own === String(name).toLowerCase());
      return found.length === 0 ? null : found.map(([, value]) => value).join(", ");
    }
    has(name) {
      return this.get(name) !== null;
    }
    set(name, value) {
      this.delete(name);
      this.append(name, value);
    }
    append(name, value) {
      this.#all.push([String(name).toLowerCase(), String(value)]);
    }
    delete(name) {
      this.#all = this.#all.filter(([own]) => own !== String(name).toLowerCase());
    }
    forEach(each) {
      for (const [name, value] of this) each(value, name, this);
    }
    *entries() {
      for (const name of new Set(this.#all.map(([name]) => name))) yield [name, this.get(name)];
    }
    *keys() {
      for (const [name] of this) yield name;
    }
    *values() {
      for (const [, value] of this) yield value;
    }
    [Symbol.iterator]() {
      return this.entries();
    }
  }
  class Response {
    #body;
    constructor({ status, statusText, url, redirected, headers, body }) {
      this.#body = body;
      this.status = status;
      this.statusText = statusText;
      this.ok = status >= 200 && status < 300;
      this.url = url;
      this.redirected = redirected;
      this.headers = new Headers(headers);
    }
    text() {
      return this.#body;
    }
    json() {
      try {
        return parse(this.#body);
      } catch {
        const begins = this.#body.slice(0, 100);
        throw new SyntaxError(`the response of ${this.url} (${this.status}) is not JSON; it starts with: ${begins}`);
      }
    }
    // The response is already complete: awaiting it is allowed but not needed.
    then(resolve, reject) {
      return settled(this).then(resolve, reject);
    }
    catch(reject) {
      return settled(this).catch(reject);
    }
    finally(after) {
      return settled(this).finally(after);
    }
  }
  // A promise must not resolve with a thenable.
  const settled = (response) =>
    Promise.resolve(Object.defineProperty(response, "then", { value: undefined, configurable: true }));

  const fetch = (target, options = {}) => {
    const from = typeof target === "string" ? {} : target;
    const url = typeof target === "string" ? target : String(target.url ?? target.href ?? target);
    const { method, headers, body, redirect } = { ...from, ...options };
    if (body !== undefined && body !== null && typeof body !== "string") {
      throw new TypeError("the body of a request must be a string; create one with `JSON.stringify`");
    }
    const request = { url, method, headers: pairs(headers), body, redirect };
    return new Response(host.fetch(request));
  };

  return { Process, files, process, Headers, fetch };
})
