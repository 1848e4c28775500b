// The visitor's settings: the time zone and the colours. This browser stores them until sign-out.
import { effect, signal } from "@preact/signals";

const stored = { zone: "lectern.zone", theme: "lectern.theme" };

function load(name: string): string {
  try {
    return localStorage.getItem(name) ?? "";
  } catch {
    return "";
  }
}

function save(name: string, value: string): void {
  try {
    if (value) localStorage.setItem(name, value);
    else localStorage.removeItem(name);
  } catch {
    // Storage is blocked: the choice lasts until the page is closed.
  }
}

/** zones are the time zones that can be chosen. */
export const zones: readonly string[] = ["UTC", ...Intl.supportedValuesOf("timeZone").filter((zone) => zone !== "UTC")];

/** deviceZone is what the visitor's device calls its time zone, such as "Etc/Unknown" in a container. */
export const deviceZone = Intl.DateTimeFormat().resolvedOptions().timeZone || "Etc/Unknown";

/** browserZone is the time zone of the visitor's device, or UTC if the API may not know that zone. */
export const browserZone = zones.includes(deviceZone) || /^Etc\/GMT[+-]\d+$/.test(deviceZone) ? deviceZone : "UTC";

/** zone is the time zone in which times are shown. */
export const zone = signal(zones.includes(load(stored.zone)) ? load(stored.zone) : browserZone);

export type Theme = "system" | "light" | "dark";

/** theme is the choice of colours. */
export const theme = signal<Theme>(((value) => (value === "light" || value === "dark" ? value : "system"))(load(stored.theme)));

/** startPreferences applies the choices, now and whenever they change. */
export function startPreferences(): void {
  effect(() => save(stored.zone, zone.value === browserZone ? "" : zone.value));
  effect(() => {
    save(stored.theme, theme.value === "system" ? "" : theme.value);
    document.documentElement.dataset["theme"] = theme.value;
  });
}
