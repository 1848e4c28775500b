// The messages between the page and the worker.
import { APIError, ConnectionError, IncompleteError } from "@lectern/client";
import type { Figures } from "./funnel.ts";

/** Order tells the worker what to count. It is the only message to the worker. */
export interface Order {
  apiKey: string;
  project: string;
  embeddable: string;
  /** The version whose page views count, or undefined for all. */
  version: number | undefined;
  /** The first moment of the period, and the first moment after it, in milliseconds since 1970; undefined for no border. */
  from: number | undefined;
  until: number | undefined;
}

/** Counted has the counts so far. */
export interface Counted {
  figures: Figures;
  /** With a version: how many changes were read. */
  changes: number | undefined;
  /** How long the worker has worked, in milliseconds. */
  ms: number;
}

/** News is a message of the worker. After done and failed, no other comes. */
export type News =
  | { type: "progress"; counted: Counted }
  | { type: "waiting"; error: PlainError; until: number }
  | { type: "done"; counted: Counted }
  | { type: "failed"; error: PlainError };

/** PlainError is an error of the client in a form that survives a message. A class does not. */
interface PlainError {
  kind: "api" | "incomplete" | "connection" | "other";
  message: string;
  status: number;
  code: APIError["code"];
  requestId: string;
}

/** plain prepares an error for a message. */
export function plain(error: unknown): PlainError {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof APIError) return { kind: "api", message, status: error.status, code: error.code, requestId: error.requestId };
  const kind = error instanceof IncompleteError ? "incomplete" : error instanceof ConnectionError ? "connection" : "other";
  return { kind, message, status: 0, code: "", requestId: "" };
}

/** rebuilt is the inverse of plain. */
export function rebuilt(error: PlainError): Error {
  switch (error.kind) {
    case "api":
      return new APIError(error.message, error);
    case "incomplete":
      return new IncompleteError(error.message);
    case "connection":
      return new ConnectionError(error.message);
    default:
      return new Error(error.message);
  }
}
