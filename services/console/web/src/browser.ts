// What the browser says about its window.
import { signal } from "@preact/signals";

/** online reports whether the browser has a network. */
export const online = signal(navigator.onLine);
for (const event of ["online", "offline"]) addEventListener(event, () => (online.value = navigator.onLine));

/** visible reports whether the visitor sees this tab. */
export const visible = signal(!document.hidden);
document.addEventListener("visibilitychange", () => (visible.value = !document.hidden));
