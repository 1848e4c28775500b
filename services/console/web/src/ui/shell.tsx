// The frame of every page: navigation, settings, help and search, and the keys that open them.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { online } from "../browser.ts";
import { late, useLoad } from "../load.ts";
import { browserZone, deviceZone, known, linkZone, ownZone, theme, type Theme, zone, zones } from "../preferences.ts";
import { address, filter, go, here, listOf, type Page, pageNames, pages } from "../router.ts";
import { signOut } from "../session.ts";
import { Commands } from "./commands.tsx";
import { Help, keys, Search } from "./dialogs.tsx";
import { Select, Text } from "./parts.tsx";
import { Patience } from "./state.tsx";

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName));
}

const themes: [Theme, string][] = [["system", "Same as the system"], ["light", "Light"], ["dark", "Dark"]];

/** Shell draws everything around a page. */
export function Shell({ project, page, children }: { project: string; page: Page | undefined; children: ComponentChildren }) {
  const dialog = useSignal<"" | "help" | "search">("");
  const more = useSignal(false); // the choices on narrow screens
  const title = useLoad(async ({ client, signal }) => (await client.project(project, { signal })).title, ["project", project]);
  const afterG = useRef(false);

  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const wasG = afterG.current;
      afterG.current = false;
      if (event.key === "k" && (event.metaKey || event.ctrlKey)) {
        event.preventDefault();
        dialog.value = "search";
        return;
      }
      if (event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target) || document.querySelector("dialog[open]")) return;
      const to = wasG ? keys[event.key] : undefined;
      const control = document.querySelector<HTMLElement>(`main [aria-keyshortcuts="${CSS.escape(event.key)}"]`);
      if (to) go(address(project, to));
      else if (control) control.click();
      else if (event.key === "g") afterG.current = true;
      else if (event.key === "/") dialog.value = "search";
      else if (event.key === "?") dialog.value = "help";
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [project]);

  const own = (chosen: string) => {
    ownZone.value = chosen;
    filter({ tz: "" }, true);
  };

  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={(e) => (e.preventDefault(), document.querySelector("main")?.focus())}>
        Skip to the page
      </a>
      <nav class="side" aria-label="Console">
        <a class="brand" href={address(project, "overview")}>
          <span class="logo" aria-hidden="true" />
          <span class="project">
            <Text>{title.value || project}</Text>
            {title.value && <bdi class="muted small">{project}</bdi>}
          </span>
        </a>
        <button type="button" class="quiet find" onClick={() => (dialog.value = "search")} aria-keyshortcuts="/">
          Search <kbd>/</kbd>
        </button>
        <button type="button" class="quiet small more" aria-expanded={more.value} onClick={() => (more.value = !more.value)}>
          More
        </button>
        <ul>
          {pages.map((p) => (
            <li key={p}>
              <a href={address(project, p)} aria-current={p === listOf(page) ? "page" : undefined}>{pageNames[p]}</a>
            </li>
          ))}
        </ul>
        <div class="choices">
          <Select label="Times in" value={zone.value} options={[...new Set([...zones, browserZone, zone.value])].map((name) => [name, name])} choose={own} />
          {browserZone !== deviceZone && <p class="muted small" data-zone>Your device’s zone, {deviceZone}, is not known. Until you choose a zone, times are in UTC.</p>}
          <Select label="Theme" value={theme.value} options={themes} choose={(chosen) => (theme.value = chosen as Theme)} />
          <div class="actions">
            <button type="button" class="quiet small" onClick={() => (dialog.value = "help")} aria-keyshortcuts="?">
              Help <kbd>?</kbd>
            </button>
            <button type="button" class="quiet small" onClick={signOut}>Sign out</button>
          </div>
        </div>
      </nav>
      <div class="content">
        {!online.value && (
          <p class="banner" role="status" data-state="offline">
            <strong>You are offline.</strong> What is shown may be out of date. The page continues when the network is back.
          </p>
        )}
        {online.value && late.value && <Patience waiting={late.value.waiting} asOf={late.value.at} />}
        {zone.value !== ownZone.value && (
          <p class="banner" role="status" data-zone="link">
            {known(linkZone.value) ? "Days and times are those of the link’s time zone" : `The link’s time zone, ${linkZone.value.slice(0, 50)}, is not known. Days and times are in`} <strong>{zone.value}</strong>.{" "}
            <button type="button" class="quiet small" onClick={() => own(ownZone.value)}>Use {ownZone.value}</button>
          </p>
        )}
        <main id="main" tabIndex={-1}>
          {children}
          {page && <Commands key={JSON.stringify(here.value)} />}
        </main>
      </div>
      {dialog.value === "help" && <Help close={() => (dialog.value = "")} />}
      {dialog.value === "search" && <Search project={project} close={() => (dialog.value = "")} />}
    </div>
  );
}
