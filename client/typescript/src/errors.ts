import type { ErrorCode } from "./types.js";

/** APIError reports that the server refused a request. */
export class APIError extends Error {
  override readonly name: string = "APIError";
  /** status is the HTTP status. It is 0 for a redirect in a browser, which hides the status. */
  readonly status: number;
  /** code is the error code. It is empty if the body is not from the API but from a gateway, for example. */
  readonly code: ErrorCode | "";
  /** requestId is the answer's X-Request-Id. The operator finds the request by it. */
  readonly requestId: string;
  /** retryAfterMs is the wait that the server asked for, in milliseconds. It is not set if the server asked for none. */
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

/**
 * HistoryLostError reports that the server does not have the reader's position in the change feed any more, because the
 * server was restored from a backup, for example. Drop what has a greater number than after, and read from the beginning.
 */
export class HistoryLostError extends APIError {
  override readonly name = "HistoryLostError";
  /** after is the last number before the lost ones. */
  readonly after: number;
  /** until is the first number after the lost ones, null if the project has not been written since. */
  readonly until: number | null;

  constructor(message: string, details: ConstructorParameters<typeof APIError>[1], after: number) {
    super(message, details);
    this.after = after;
    this.until = typeof details.context?.["until"] === "number" ? details.context["until"] : null;
  }
}

/** IncompleteError reports a truncated answer. The caller must not treat it as complete. */
export class IncompleteError extends Error {
  override readonly name = "IncompleteError";
}

/** ConnectionError reports that no answer arrived. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";
}
