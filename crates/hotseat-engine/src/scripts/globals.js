// Defines the globals that scripts have besides the language. Runs before any script, so built-ins are still unmodified.
(function (host) {
  "use strict";
  const { defineProperty } = Object;
  const { parse } = JSON;
  const say = console.log;
  let powers;
  for (const name of ["Process", "files", "process", "Headers", "fetch"]) {
    const give = (value) => defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
    const load = () => {
      powers ??= host.powers()(host, parse, say);
      give(powers[name]);
      return powers[name];
    };
    // Most scripts use none of them.
    defineProperty(globalThis, name, { get: load, set: give, configurable: true, enumerable: false });
  }
})
