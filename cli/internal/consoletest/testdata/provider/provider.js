// An OpenID provider at the address ISSUER for the console at the address CONSOLE. Everyone signs in by a name, without a
// password. Tokens expire after 20 seconds, those of bob after an hour, and refresh tokens count once. It prints its own address.
import { createServer } from "node:http";
import Provider from "oidc-provider";

const { ISSUER, CONSOLE } = process.env;
const page = (body) => `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><title>Provider</title><h1>Provider</h1>${body}`;

const life = ({ oidc }) => (oidc.account?.accountId === "bob" ? 3600 : 20);

const provider = new Provider(ISSUER, {
  clients: [{
    client_id: "console", token_endpoint_auth_method: "none", redirect_uris: [CONSOLE], post_logout_redirect_uris: [CONSOLE],
    grant_types: ["authorization_code", "refresh_token"], response_types: ["code"],
  }],
  cookies: { keys: ["not a secret"] },
  clientBasedCORS: () => true,
  // As Entra does for members of many groups, it says that there are some.
  claims: { openid: ["sub", "hasgroups"] },
  conformIdTokenClaims: false,
  findAccount: (_, sub) => ({ accountId: sub, claims: () => ({ sub, hasgroups: true }) }),
  issueRefreshToken: () => true,
  pkce: { required: () => true },
  ttl: { IdToken: life, AccessToken: life, RefreshToken: 3600, Session: 3600, Grant: 3600, Interaction: 3600 },
  interactions: { url: (_, { uid }) => `/login/${uid}` },
  // Nobody is asked for consent.
  async loadExistingGrant({ oidc }) {
    const known = oidc.session.grantIdFor(oidc.client.clientId);
    if (known) return oidc.provider.Grant.find(known);
    const grant = new oidc.provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId });
    grant.addOIDCScope("openid");
    await grant.save();
    return grant;
  },
  features: {
    devInteractions: { enabled: false },
    rpInitiatedLogout: {
      logoutSource: (ctx, form) => {
        ctx.body = page(`${form}<button form="op.logoutForm" name="logout" value="yes">Sign me out</button>`);
      },
    },
  },
});
provider.proxy = true;
provider.use(async (ctx, next) => {
  if (!ctx.path.startsWith("/login/")) return next();
  const login = new URLSearchParams(ctx.search).get("login");
  if (login) return provider.interactionFinished(ctx.req, ctx.res, { login: { accountId: login } });
  ctx.body = page('<form><input name="login" autofocus><button>Continue</button></form>');
});

const server = createServer(provider.callback());
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
