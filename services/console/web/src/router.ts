// The addresses of the console. Each page has one that can be shared and reloaded:
//
//     /console/p/{project}/{page}/{id}?{filters}
//
// An address never holds the API key.
import { effect, signal } from "@preact/signals";
import { linkZone, ownZone, zone } from "./preferences.ts";

export const pages = ["overview", "entries", "embeddables", "experiments", "connect"] as const;
/** The pages of one subject that have no list, each with the page of the navigation that it belongs to. */
const subjects = { contacts: "entries", funnel: "embeddables", answers: "embeddables" } as const;
/** Page is a page of the navigation, or of one subject. */
export type Page = (typeof pages)[number] | keyof typeof subjects;

/** listOf returns the page of the navigation that a page belongs to. */
export const listOf = (page: Page | undefined): Page | undefined => (page && page in subjects ? subjects[page as keyof typeof subjects] : page);

/** pageNames are the names of the pages, as visitors read them. */
export const pageNames: Record<(typeof pages)[number], string> = {
  overview: "Overview",
  entries: "Entries",
  embeddables: "Embeddables",
  experiments: "Experiments",
  connect: "Connect",
};

const base = "/console/";

export interface Place {
  /** The project, or "" for the bare console. */
  project: string;
  /** The page, or undefined if there is no page of that name. */
  page: Page | undefined;
  /** The subject of the page: an entry, a contact, an embeddable or an experiment. "" for the list. */
  id: string;
  query: URLSearchParams;
}

function decode(segment: string | undefined): string {
  try {
    return decodeURIComponent(segment ?? "");
  } catch {
    return segment ?? "";
  }
}

/** parse reads an address of this origin. */
export function parse(url: Pick<URL, "pathname" | "search">): Place {
  const query = new URLSearchParams(url.search);
  const [mark, project, page = "overview", id, ...rest] = url.pathname.slice(base.length).replace(/\/$/, "").split("/");
  if (mark === "" && project === undefined) return { project: "", page: "overview", id: "", query };
  const known = mark === "p" && project && rest.length === 0 ? ([...pages, "contacts", "funnel", "answers"] as const).find((p) => p === page) : undefined;
  return { project: mark === "p" ? decode(project) : "", page: known, id: decode(id), query };
}

/** here is the place that the window shows. */
export const here = signal<Place>(parse(location));
effect(() => void (linkZone.value = here.value.query.get("tz") ?? ""));

/** The filters that say a period. */
const periodFilters = ["from", "to", "days"];

/** address is the inverse of parse. Filters that are empty are left out. The address keeps the period of the current page, unless the query has another one, and a zone that is not the visitor's own. */
export function address(project: string, page: Page, id = "", query: Record<string, string | undefined> = {}): string {
  const filters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) filters.set(name, value);
  if (!periodFilters.some((name) => name in query)) {
    for (const name of periodFilters) if (here.value.query.get(name)) filters.set(name, here.value.query.get(name) ?? "");
  }
  if (zone.value !== ownZone.value && !("tz" in query)) filters.set("tz", zone.value);
  const path = [project, page, id].filter(Boolean).map(encodeURIComponent).join("/");
  return `${base}p/${path}${filters.size ? `?${filters}` : ""}`;
}

/** go shows another address. The history keeps the current one, unless it is replaced. */
export function go(to: string, options: { replace?: boolean } = {}): void {
  const before = here.peek();
  if (options.replace) history.replaceState(history.state, "", to);
  else {
    scrolled.set(shown, scrollY);
    shown = String(Math.random());
    history.pushState({ shown }, "", to);
  }
  here.value = parse(location);
  const after = here.peek();
  if (before.page !== after.page || before.id !== after.id || before.project !== after.project) {
    scrollTo(0, 0);
    requestAnimationFrame(() => document.querySelector<HTMLElement>("main")?.focus({ preventScroll: true }));
  }
}

// How far each address of the history was scrolled, by the name that its state has.
const scrolled = new Map<string, number>();
let shown = "";

/** back shows the address that the browser's buttons lead to, as far down as it was left. */
function back({ state }: PopStateEvent): void {
  scrolled.set(shown, scrollY);
  shown = (state as { shown?: string } | null)?.shown ?? "";
  here.value = parse(location);
  const y = scrolled.get(shown) ?? 0;
  const controller = new AbortController();
  for (const moved of ["wheel", "pointerdown", "keydown", "popstate"]) addEventListener(moved, () => controller.abort(), { signal: controller.signal });
  // The page may still read what makes it as long as it was. It is scrolled until then, or until the visitor moves it.
  const lengthened = new ResizeObserver(() => {
    scrollTo(0, y);
    if (scrollY >= y - 1) controller.abort();
  });
  controller.signal.addEventListener("abort", () => lengthened.disconnect());
  lengthened.observe(document.body);
}

/** filtered returns the address of the current page with other filters. An empty value removes a filter. Lists begin again. */
export function filtered(changes: Record<string, string>): string {
  const { project, page = "overview", id, query } = here.peek();
  return address(project, page, id, { ...Object.fromEntries(query), page: "", ...changes });
}

/** filter changes filters of the current page in its address. A choice is a step of the history, so that Back undoes it. What the visitor types is not. */
export function filter(changes: Record<string, string>, typed = false): void {
  const to = filtered(changes);
  go(to, { replace: typed || to === location.pathname + location.search });
}

/** startRouter makes links and the browser's buttons work without loading the page again. */
export function startRouter(): void {
  history.scrollRestoration = "manual";
  // A link to the page names the zone, so that it shows everybody the same figures.
  effect(() => {
    if (here.value.project && !here.value.query.has("tz")) history.replaceState(history.state, "", `${location.pathname}${location.search}${location.search ? "&" : "?"}tz=${encodeURIComponent(zone.value)}${location.hash}`);
  });
  shown = (history.state as { shown?: string } | null)?.shown ?? "";
  addEventListener("popstate", back);
  addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (!link || event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || link.hasAttribute("target") || link.hasAttribute("download")) return;
    // A link of a drawing has its address in an object.
    const url = new URL(link.getAttribute("href") ?? "", location.href);
    if (url.origin !== location.origin || !url.pathname.startsWith(base) || url.hash) return;
    event.preventDefault();
    go(url.pathname + url.search);
  });
}
