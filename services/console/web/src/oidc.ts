// What the console knows of an OpenID provider: its settings, and what a sign-in gives.
import type { State } from "./renewal.ts";

/** Settings are the settings of the console's service: CONSOLE_ISSUER and so on. */
export interface Settings {
  issuer: string;
  clientId: string;
  scopes: string;
  /** The audience to ask for, or "". */
  asked: string;
  /** The audience that a token must have for Lectern. */
  audience: string;
  /** The origins that the Content-Security-Policy allows. */
  origins: string[];
}

/** settings are the settings of the provider. Without one they are null, and visitors sign in by keys alone. */
export const settings = JSON.parse(document.querySelector<HTMLMetaElement>("meta[name=lectern-sign-in]")?.content ?? "null") as Settings | null;

/** Tokens are what the provider gave. They are in the session storage of this tab, and no other tab gets them. */
export interface Tokens extends State {
  /** The JWT that Lectern accepts. */
  token: string;
  /** The address of the provider that signs out, if it has one. */
  end?: string | undefined;
}

/** Pending is a sign-in that the provider has not answered. */
export interface Pending {
  verifier: string;
  state: string;
  nonce: string;
  /** Whether the provider asks the visitor nothing. */
  silent: boolean;
  /** The address to return to. */
  to: string;
}

/** Claims are the parts of a token that the console reads. */
export interface Claims {
  iss?: string;
  sub?: string;
  aud?: string | string[];
  iat?: number;
  exp?: number;
  _claim_names?: { groups?: string };
  hasgroups?: boolean | string;
}

/** claims reads a JWT without a check of its signature: Lectern checks it. It returns null for another token. */
export function claims(token: string): Claims | null {
  try {
    return JSON.parse(atob((token.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/"))) as Claims;
  } catch {
    return null;
  }
}

/**
 * groupsCut reports whether the provider left the groups out of the token. Entra does so for members of many groups: the
 * token says only where the groups are (OpenID Connect Core 1.0, section 5.6.2), or that there are some.
 */
export const groupsCut = (claims: Claims): boolean => claims._claim_names?.groups !== undefined || String(claims.hasgroups) === "true";
