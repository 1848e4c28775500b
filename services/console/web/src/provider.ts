// Talks to the OpenID provider as a public client: the authorization code flow with PKCE (RFC 7636), and renewal by the
// refresh token.
import * as oauth from "oauth4webapi";
import { SignInError } from "./errors.ts";
import { claims, type Pending, settings, type Tokens } from "./oidc.ts";
import type { Answer } from "./renewal.ts";

/** Given is an answer with a token. */
type Given = Answer & Pick<Tokens, "token" | "end">;

/** How long one request to the provider may take, in milliseconds. */
const patience = 20_000;

const { issuer, clientId, scopes, asked, audience, origins } = settings ?? { issuer: "", clientId: "", scopes: "", asked: "", audience: "", origins: [] as string[] };
const client: oauth.Client = { client_id: clientId };
const home = `${location.origin}/console/`;

const options = () => ({ [oauth.allowInsecureRequests]: issuer.startsWith("http:"), signal: AbortSignal.timeout(patience) });

/** from runs a conversation with the provider, and throws what failed as a SignInError. */
async function from<T>(conversation: (server: oauth.AuthorizationServer) => Promise<T>): Promise<T> {
  try {
    if (!isSecureContext) throw new SignInError("The sign-in needs HTTPS", `Browsers do not allow it at ${location.origin}.`);
    const answer = await fetch(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`, { credentials: "omit", signal: AbortSignal.timeout(patience) });
    const server = (await answer.json()) as oauth.AuthorizationServer;
    if (server.issuer !== issuer) throw new SignInError("The sign-in failed", `${issuer} answers ${answer.status} and calls itself ${server.issuer}.`);
    return await conversation(server);
  } catch (error) {
    if (error instanceof SignInError) throw error;
    if (error instanceof oauth.ResponseBodyError) throw refusal(error.error, error.error_description);
    // fetch throws a TypeError or a DOMException without an answer. The rest is an answer that breaks a standard.
    throw new SignInError(error instanceof oauth.OperationProcessingError ? "The sign-in failed" : "The sign-in provider cannot be reached", `${issuer}: ${String(error)}`);
  }
}

const refusal = (error: string, description = "") => new SignInError("The sign-in provider refused", [error, description].filter(Boolean).join(": "), true);

/**
 * begin returns where the sign-in begins, and what finish needs after it. A silent sign-in fails if the provider would ask the visitor
 * something (OpenID Connect Core 1.0, section 3.1.2.1).
 */
export const begin = (silent: boolean): Promise<{ to: URL; pending: Pending }> =>
  from(async ({ authorization_endpoint = "" }) => {
    const [verifier, state, nonce] = [oauth.generateRandomCodeVerifier(), oauth.generateRandomState(), oauth.generateRandomNonce()];
    const to = new URL(authorization_endpoint);
    for (const [name, value] of Object.entries({
      client_id: clientId, redirect_uri: home, response_type: "code", scope: scopes, state, nonce, ...(asked && { audience: asked }), ...(silent && { prompt: "none" }),
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: "S256",
    })) to.searchParams.set(name, value);
    return { to, pending: { verifier, state, nonce, silent, to: location.pathname + location.search } };
  });

/** finish returns what the provider gives for its answer. */
export const finish = (answer: URL, { verifier, state, nonce }: Pending): Promise<Given> =>
  from((server) => {
    const { code = "", iss = issuer, error, error_description, ...rest } = Object.fromEntries(answer.searchParams) as Record<string, string>;
    if (rest["state"] !== state || iss !== issuer) throw new SignInError("The sign-in failed", "The answer of the provider belongs to another sign-in.");
    if (error) throw refusal(error, error_description);
    return grant(server, "authorization_code", { code, redirect_uri: home, code_verifier: verifier }, nonce);
  });

/** renewed returns a new token. keep gets the refresh token of the provider's answer before anything else can fail. */
export const renewed = ({ refresh }: Tokens, keep: (refresh: string) => void): Promise<Given> =>
  from((server) => {
    if (!refresh) throw new SignInError("Your sign-in has ended", "The token has expired, and the provider gave no refresh token.", true);
    return grant(server, "refresh_token", { refresh_token: refresh }, undefined, keep);
  });

async function grant(server: oauth.AuthorizationServer, type: string, parameters: Record<string, string>, nonce?: string, keep?: (refresh: string) => void): Promise<Given> {
  const { origin } = new URL(server.token_endpoint ?? "");
  if (!origins.includes(origin)) throw new SignInError("The console may not connect to the provider", `CONSOLE_ISSUER_ORIGINS lacks ${origin}, the origin of its token endpoint.`);
  const answer = await oauth.genericTokenEndpointRequest(server, client, oauth.None(), type, parameters, options());
  const { refresh_token: refresh, id_token: issued = "" } = (await answer.clone().json().catch(() => null) ?? {}) as { refresh_token?: string; id_token?: string };
  if (refresh) keep?.(refresh);
  // The clock of this device may be wrong. The ID token has the present time by the provider's clock.
  const now = Date.now() / 1000;
  const given = await oauth.processGenericTokenEndpointResponse(server, { ...client, [oauth.clockSkew]: (claims(issued)?.iat ?? now) - now }, answer);
  const { access_token, id_token = "" } = given;
  if (nonce && oauth.getValidatedIdTokenClaims(given)?.nonce !== nonce) throw new SignInError("The sign-in failed", "The ID token has another nonce.");
  const token = [access_token, id_token].find((one) => [claims(one)?.aud].flat().includes(audience));
  if (!token) throw new SignInError("The provider gave no token for Lectern", `No token of ${issuer} is a JWT with the audience ${audience}.`, true);
  const { iat = 0, exp = 0 } = claims(token) ?? {};
  const { end_session_endpoint: end } = server;
  return {
    token,
    refresh,
    life: (exp - iat) * 1000,
    // Without the ID token as a hint: it may be the token that Lectern accepts, and addresses are no secrets.
    ...(end && { end: `${end}${end.includes("?") ? "&" : "?"}${new URLSearchParams({ client_id: clientId, post_logout_redirect_uri: home })}` }),
  };
}
