/** The exceptions of Fullbloom: one tree, with the names and the sentences that they have in Python. */

/** Base class of all errors that the package throws. */
export class FullbloomError extends Error {
  override get name(): string {
    return this.constructor.name;
  }
}

/** A parameter is out of its range. */
export class ParameterError extends FullbloomError {}
/** A parameter has the wrong type. */
export class ParameterTypeError extends FullbloomError {}
/** A key's type has no canonical bytes; the message lists the types that do. */
export class KeyTypeError extends FullbloomError {}
/** A structure does not support this method; the message names one that does. */
export class MissingOperation extends FullbloomError {}
/** The filter needs more memory than there is. */
export class FilterMemoryError extends FullbloomError {}
/** A strict filter is at its capacity, or a growing filter cannot grow; existing keys are unaffected. */
export class FilterFull extends FullbloomError {}
/** Two filters cannot be combined; the message names the fields that differ. */
export class IncompatibleFilters extends FullbloomError {}
/** The bytes are not a filter, are damaged, or come from a newer release. */
export class FormatError extends FullbloomError {}
/** The filter cannot be changed. */
export class ReadOnlyFilter extends FullbloomError {}

const CLASSES = {
  FullbloomError,
  ParameterError,
  ParameterTypeError,
  KeyTypeError,
  MissingOperation,
  FilterMemoryError,
  FilterFull,
  IncompatibleFilters,
  FormatError,
  ReadOnlyFilter,
} as const;

/** The error that the module threw as "Class:message", as an object of that class; anything else as it is. */
export function translate(thrown: unknown): unknown {
  if (typeof thrown !== "string") {
    return thrown instanceof Error && thrown.message.startsWith("null pointer")
      ? new FullbloomError("the filter was freed; open or create another one")
      : thrown;
  }
  const colon = thrown.indexOf(":");
  const name = thrown.slice(0, colon);
  const found = name in CLASSES ? CLASSES[name as keyof typeof CLASSES] : FullbloomError;
  return new found(thrown.slice(colon + 1));
}

/** What `work` returns; what it throws is translated. */
export function guard<T>(work: () => T): T {
  try {
    return work();
  } catch (thrown) {
    throw translate(thrown);
  }
}
