import { render } from "preact";
import { App } from "./app.tsx";
import { startPreferences } from "./preferences.ts";
import { startRouter } from "./router.ts";
import { shareSession, takeSignInLink, watchSession } from "./session.ts";
import { takeAnswer, trySignIn } from "./tokens.ts";

// First of all, so that the key or the provider's answer is in the address for as short a time as possible.
takeSignInLink();
takeAnswer();
addEventListener("hashchange", takeSignInLink);
watchSession();
shareSession(trySignIn);
startPreferences();
startRouter();

const root = document.getElementById("app");
if (root) {
  root.replaceChildren();
  render(<App />, root);
}
