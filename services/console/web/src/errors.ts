// What can go wrong, as errors.

/** errorOf returns what was thrown as an error. */
export const errorOf = (thrown: unknown): Error => (thrown instanceof Error ? thrown : new Error(String(thrown)));

/** SignInError reports a sign-in or a renewal that failed. With refused, the provider has said so, and another attempt is of no use. */
export class SignInError extends Error {
  constructor(readonly title: string, message: string, readonly refused = false) {
    super(message);
  }
}
