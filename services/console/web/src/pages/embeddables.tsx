import { counts, created, spanOf, usePeriod } from "../insights.ts";
import { useLoad } from "../load.ts";
import { useEmbeddables } from "../names.ts";
import { address } from "../router.ts";
import { EmbeddableTable } from "../ui/embeddables.tsx";
import { PageHead } from "../ui/parts.tsx";
import { PeriodFilter, spanText } from "../ui/period.tsx";
import { Empty, Loaded, Loading, Patience, Problem, Reversed } from "../ui/state.tsx";

/** Embeddables lists the embeddables of a project with their figures. Without figures the list still works: the key may lack the scope. */
export function Embeddables({ project }: { project: string }) {
  const { period, inputs } = usePeriod();
  const embeddables = useEmbeddables(project);
  const { state, value, stale, error, waiting, reload } = useLoad(
    async ({ client, signal }) => {
      const span = period.reversed ? null : await spanOf(client, project, period, undefined, signal);
      if (!span) return null;
      const interval = span.days > 700 ? ("month" as const) : span.days > 60 ? ("week" as const) : ("day" as const);
      const [figures, trend] = await Promise.all([
        counts(client, project, { ...created(span), interval: "all", by: "embeddable" }, signal),
        // Without a trend, because there are too many rows, the table still is worth it.
        counts(client, project, { ...created(span), interval, by: "embeddable" }, signal).then((counts) => ({ interval, counts }), () => undefined),
      ]);
      return { span, figures, trend };
    },
    ["embeddable figures", project, ...inputs],
  );
  return (
    <>
      <PageHead title="Embeddables" lead="The forms and flows on your website. Open one to see where visitors leave it, and what they answer." />
      <form class="filters" aria-label="Filters" onSubmit={(e) => e.preventDefault()}>
        <PeriodFilter period={period} />
      </form>
      {waiting && (stale || !value) && <Patience waiting={waiting} />}
      {error && embeddables.state === "done" && <Problem error={error} retry={reload} />}
      {period.reversed && <Reversed />}
      <Loaded load={embeddables} what="the embeddables" rows={3}>
        {(list) =>
          list.length === 0 && state !== "loading" && !value?.figures.length ? (
            <Empty title="This project has no embeddables yet">
              <p>An embeddable appears here when its definition or its first entry is stored. <a href={address(project, "connect")}>Send the first entry</a>.</p>
            </Empty>
          ) : state === "loading" && value === undefined ? (
            <Loading what="the figures" rows={3} />
          ) : (
            <div class="card" data-stale={stale || undefined}>
              {value && <p class="muted small">{spanText(value.span)}</p>}
              <EmbeddableTable project={project} embeddables={list} counts={value?.figures} span={value?.span} trend={value?.trend} />
            </div>
          )
        }
      </Loaded>
    </>
  );
}
