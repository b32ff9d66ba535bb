// Globals of every context. Runs before any script, so built-ins are still unmodified.
(function (say, callNow, load) {
  "use strict";
  const { stringify, parse } = JSON;
  const { apply } = Reflect;
  const ErrorClass = Error;
  const PromiseClass = Promise;
  const MapClass = Map;
  const SetClass = Set;
  const text = String;
  const join = Array.prototype.join;
  const map = Array.prototype.map;
  const toWellFormed = String.prototype.toWellFormed;
  const has = Object.hasOwn;
  const { then } = Promise.prototype;

  function shown(value) {
    if (typeof value === "string") return value;
    if (value instanceof ErrorClass) return text(value);
    if (typeof value === "function") return `[function ${value.name || "without a name"}]`;
    try {
      return stringify(value) ?? text(value);
    } catch {
      try {
        return text(value);
      } catch {
        return "[object]";
      }
    }
  }

  const line = (values) => apply(toWellFormed, apply(join, apply(map, values, [(value) => shown(value)]), [" "]), []);
  const sayer = (level) => (...values) => say(level, line(values));
  const console = {
    log: sayer("log"),
    info: sayer("info"),
    warn: sayer("warn"),
    error: sayer("error"),
    debug: sayer("debug"),
    trace: sayer("debug"),
    dir: (value) => say("log", line([value])),
    assert: (holds, ...values) => {
      if (!holds) say("error", line(["Assertion failed:", ...values]));
    },
  };
  const hidden = { writable: true, configurable: true, enumerable: false };
  Object.defineProperty(globalThis, "console", { value: console, ...hidden });
  delete globalThis.performance;
  // An error is that of a promise, which is reported if nothing handles it.
  const queueMicrotask = (work) => {
    if (typeof work !== "function") throw new TypeError("queueMicrotask needs a function");
    apply(then, PromiseClass.resolve(), [() => work()]);
  };
  Object.defineProperty(globalThis, "queueMicrotask", { value: queueMicrotask, ...hidden });

  /** Returns the function of the host at an index. */
  function called(index, kind) {
    if (kind === "code") return () => load(index);
    return (...values) => {
      const answer = parse(callNow(index, stringify(values)));
      if (has(answer, "error")) throw new ErrorClass(answer.error);
      return answer.value;
    };
  }

  /** Defines a function of the host that scripts see. */
  function define(name, index, kind) {
    const value = called(index, kind);
    Object.defineProperty(value, "name", { value: name });
    Object.defineProperty(globalThis, name, { value, ...hidden });
  }

  /** Returns an object with functions of the host that only its own code sees. */
  function conceal(names, kinds, first) {
    const functions = {};
    for (let at = 0; at < names.length; at += 1) functions[names[at]] = called(first + at, kinds[at]);
    return functions;
  }

  /** Refuses values that JSON cannot represent: it would be `{}`, whatever they contain, or null. For `stringify`. */
  function plain(_, value) {
    if (typeof value === "number" && value - value !== 0) throw new ErrorClass(`it contains ${value}, which JSON cannot represent`);
    if (value instanceof PromiseClass) throw new ErrorClass("it contains a promise; `await` it");
    if (value instanceof MapClass) throw new ErrorClass("it contains a `Map`; convert it with `Object.fromEntries`");
    if (value instanceof SetClass) throw new ErrorClass("it contains a `Set`; convert it with `Array.from`");
    return value;
  }

  return { define, conceal, plain };
});
