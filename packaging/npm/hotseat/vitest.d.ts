/** Options of {@link suites}. */
export interface SuitesOptions {
  /** Suites: files, folders or globs. Default: `suites` of the project file. */
  paths?: string[];
  /** Folder in which Hotseat runs. Default: the working folder. */
  cwd?: string;
  /** Further arguments for `hotseat test`, such as `["--runs", "3"]`. */
  args?: string[];
  /** Further environment variables for Hotseat. */
  env?: Record<string, string>;
}

/**
 * Declares the cases of Hotseat's suites as tests. Call it in a test file, at the top level or in `describe`. One
 * process runs all selected cases of the call; each test waits for the result of its case.
 *
 * @throws if the cases cannot be read.
 */
export function suites(options?: SuitesOptions): void;
