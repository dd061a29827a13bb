/** Why a request failed; `message` is a sentence for people, mostly the service's own. */
export class Problem extends Error {
  constructor(
    /** The service's stable word for it; "unreachable" and "garbage" are this page's own. */
    readonly code: string,
    message: string,
    readonly status: number = 0,
    readonly retryAfter: number | null = null,
  ) {
    super(message);
  }

  /** Whether the same request may succeed later. */
  get isTemporary(): boolean {
    return this.status === 0 || this.status === 429 || this.status === 408 || this.status >= 500;
  }
}
