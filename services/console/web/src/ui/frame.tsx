// What all pages of an embeddable have: its name, its tabs, and the period of their figures.
import type { ComponentChildren } from "preact";
import { entriesPeriod, usePeriod, useSpan } from "../insights.ts";
import { useNames } from "../names.ts";
import type { Span } from "../period.ts";
import { address, type Page } from "../router.ts";
import { FirstEntry } from "./first.tsx";
import { PageHead } from "./parts.tsx";
import { PeriodFilter, spanText } from "./period.tsx";
import { Loaded, Reversed } from "./state.tsx";

/** EmbeddableHead is the head of a page of an embeddable. Its tabs lead to the other pages, for the same period. */
export function EmbeddableHead({ project, id, current, lead, children }: { project: string; id: string; current: Page; lead: ComponentChildren; children?: ComponentChildren }) {
  const tab = (page: Page, name: string, key: string, to: string) => <a aria-current={page === current ? "page" : undefined} aria-keyshortcuts={key} href={to}>{name}</a>;
  return (
    <>
      <PageHead title={useNames(project)(id)} lead={lead}>{children}</PageHead>
      <nav class="tabs" aria-label="Embeddable">
        {tab("funnel", "Funnel", "f", address(project, "funnel", id))}
        {tab("answers", "Answers", "a", address(project, "answers", id))}
        {tab("embeddables", "Versions", "v", address(project, "embeddables", id))}
        {tab("entries", "Entries", "e", address(project, "entries", "", { embeddable: id, ...(current !== "entries" && entriesPeriod()) }))}
      </nav>
    </>
  );
}

/** Kept keeps what the tabs of an embeddable share, so that no tab reads it again. */
export function Kept({ project, id }: { project: string; id: string }) {
  useNames(project);
  useSpan(project, id);
  return null;
}

/** InPeriod lets the visitor choose a period, and shows the figures of an embeddable in it. */
export function InPeriod({ project, id, filters, children }: { project: string; id: string; filters?: ComponentChildren; children: (span: Span) => ComponentChildren }) {
  const { period } = usePeriod();
  const load = useSpan(project, id);
  return (
    <>
      <form class="filters" aria-label="Filters" onSubmit={(e) => e.preventDefault()}>
        <PeriodFilter period={period} />
        {filters}
      </form>
      <Loaded load={load} what="the figures" rows={6}>
        {(span) =>
          span === undefined ? (
            <Reversed />
          ) : span === null ? (
            <FirstEntry project={project} embeddable={id} wake={load.reload} />
          ) : (
            <>
              <p class="muted small">{spanText(span)}</p>
              {children(span)}
            </>
          )
        }
      </Loaded>
    </>
  );
}
