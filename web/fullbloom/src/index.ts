/**
 * Bloom filters and their family, in browsers, workers and Node: the core of Fullbloom as WebAssembly.
 *
 * ```js
 * import { init, open } from "fullbloom";
 * await init();
 * const passwords = open(new Uint8Array(await (await fetch("leaked.bloom")).arrayBuffer()));
 * passwords.has("correct horse");
 * ```
 */

export {
  FilterFull,
  FilterMemoryError,
  FormatError,
  FullbloomError,
  IncompatibleFilters,
  KeyTypeError,
  MissingOperation,
  ParameterError,
  ParameterTypeError,
  ReadOnlyFilter,
} from "./errors.js";
export {
  type Info,
  type Kind,
  type OpenOptions,
  type Parameter,
  type Parameters,
  type Secret,
  Filter,
  create,
  hashKey,
  kinds,
  open,
  openFile,
} from "./filter.js";
export { type Key, Float } from "./keys.js";
export { type Source, init, initSync } from "./module.js";
