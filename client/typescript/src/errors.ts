import type { ErrorCode } from "./types.js";

/** APIError says that the server refused a request. */
export class APIError extends Error {
  override readonly name = "APIError";
  /** status is the HTTP status. It is 0 for a redirect in a browser, which hides the status. */
  readonly status: number;
  /** code names the kind of failure. It is empty when the body was not the API's, as from a gateway in between. */
  readonly code: ErrorCode | "";
  /** requestId is the answer's X-Request-Id, by which the operator finds the request. */
  readonly requestId: string;
  /** retryAfterMs is how long the server asked to wait, in milliseconds, if it did. */
  declare readonly retryAfterMs?: number;
  /** context holds the body's other fields, such as projectId, entryId and parameter. */
  readonly context: Record<string, unknown>;

  constructor(
    message: string,
    details: {
      status: number;
      code?: ErrorCode | "";
      requestId?: string;
      retryAfterMs?: number | undefined;
      context?: Record<string, unknown>;
    },
  ) {
    super(message);
    this.status = details.status;
    this.code = details.code ?? "";
    this.requestId = details.requestId ?? "";
    if (details.retryAfterMs !== undefined) this.retryAfterMs = details.retryAfterMs;
    this.context = details.context ?? {};
  }
}

/** IncompleteError says that an answer was cut off: it must not be taken for the whole. */
export class IncompleteError extends Error {
  override readonly name = "IncompleteError";
}

/** ConnectionError says that there was no answer at all. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";
}
