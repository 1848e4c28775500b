// The visitor's settings: the time zone and the colours. This browser stores them until sign-out.
import { computed, effect, signal } from "@preact/signals";

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

/** known returns the name of a zone, or "" if the browser or the API may not know the zone. The API knows no offsets such as +02:00. */
export function known(zone: string): string {
  try {
    const { timeZone } = new Intl.DateTimeFormat("en", { timeZone: zone }).resolvedOptions();
    return zones.includes(timeZone) || (/^[A-Z]\w+\/[\w/+-]+$/.test(timeZone) && timeZone !== "Etc/Unknown") ? timeZone : "";
  } catch {
    return "";
  }
}

/** browserZone is the time zone of the visitor's device, or UTC if that zone is not known. */
export const browserZone = known(deviceZone) || "UTC";

/** ownZone is the zone that the visitor chose. */
export const ownZone = signal(known(load(stored.zone)) || browserZone);

/** linkZone is what the address says as its zone, or "". */
export const linkZone = signal("");

/** zone is the time zone in which times are shown: that of the address, or else the visitor's own. */
export const zone = computed(() => (linkZone.value ? known(linkZone.value) || "UTC" : ownZone.value));

export type Theme = "system" | "light" | "dark";

/** theme is the choice of colours. */
export const theme = signal<Theme>(((value) => (value === "light" || value === "dark" ? value : "system"))(load(stored.theme)));

/** startPreferences applies the choices, now and whenever they change. */
export function startPreferences(): void {
  effect(() => save(stored.zone, ownZone.value === browserZone ? "" : ownZone.value));
  effect(() => {
    save(stored.theme, theme.value === "system" ? "" : theme.value);
    document.documentElement.dataset["theme"] = theme.value;
  });
}
