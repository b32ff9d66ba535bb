// Finds the program of this platform.
import { existsSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

/**
 * Returns the path of the program. `HOTSEAT_BINARY` takes precedence over the package of this platform.
 */
export function findBinary() {
  const override = process.env.HOTSEAT_BINARY;
  if (override) {
    if (!existsSync(override)) {
      throw new Error(`HOTSEAT_BINARY=${override}: no such file`);
    }
    return override;
  }
  const name = `@hotseat/cli-${process.platform}-${process.arch}`;
  try {
    return require.resolve(`${name}/hotseat`);
  } catch {
    throw new Error(
      `the package ${name} is not installed; install hotseat again without --omit=optional, ` +
        "or set HOTSEAT_BINARY to a program that you built",
    );
  }
}
