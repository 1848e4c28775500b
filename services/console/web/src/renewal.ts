// When the tokens of a tab are renewed, and what the tab keeps of an answer. Go's package shared/renewal has the same rules
// and the same table of cases, and explains them.

const shortest = 10_000;
const longest = 600_000;

/** State is what a tab has of its token and the renewals, with times by the clock of this device in milliseconds. */
export interface State {
  refresh?: string | undefined;
  /** When the next request is due, and when the token expires. */
  renewAt: number;
  until: number;
  /** How many requests failed since the last token. */
  failures?: number | undefined;
}

/** Answer is the outcome of a request. It may have a refresh token even if its token is of no use. */
export interface Answer {
  refresh?: string | undefined;
  /** How long the token is valid from the start of the request, in milliseconds. Undefined: there is none. */
  life?: number | undefined;
  /** Whether an early retry would not help. */
  refused?: boolean | undefined;
}

/** wait returns the time until the next request is due, in milliseconds. Only a refresh token gets another token. */
export function wait({ refresh, renewAt, until }: State, now: number): number {
  return Math.max(0, Math.min(until, refresh ? renewAt : until) - now);
}

/** after returns the state after the answer to a request that was sent at a time. */
export function after(state: State, sent: number, { refresh = state.refresh, life, refused }: Answer): State {
  if (life !== undefined) return { refresh, until: sent + life, renewAt: sent + Math.max((life * 2) / 3, shortest), failures: 0 };
  const { until, failures = 0 } = state;
  const delay = refused || failures >= 6 ? longest : shortest * 2 ** failures;
  const soon = until > sent ? Math.max((until - sent) / 4, shortest) : longest;
  return { refresh, until, renewAt: sent + Math.min(delay, soon), failures: failures + 1 };
}
