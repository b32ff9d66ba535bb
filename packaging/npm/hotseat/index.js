// Hotseat runs tests in TypeScript itself; Node does not.
throw new Error('tests that import "hotseat" run with `npx hotseat test`; for vitest, import "hotseat/vitest"');
