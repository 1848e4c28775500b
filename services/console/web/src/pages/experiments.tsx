import type { Experiment } from "@lectern/client";
import { nameOfWinner, statuses, statusOf, variantsOf } from "../experiments.ts";
import { useLoad } from "../load.ts";
import { useNames } from "../names.ts";
import { address, filter, here } from "../router.ts";
import { count, day } from "../time.ts";
import { Badge, PageHead, Text, Time } from "../ui/parts.tsx";
import { Verdict } from "../ui/results.tsx";
import { Empty, Loaded } from "../ui/state.tsx";
import { Table } from "../ui/table.tsx";

/** How many verdicts the list shows, for each of which it reads figures. */
const mostVerdicts = 20;

/** Experiments lists the experiments of a project, by status, with what each found out. */
export function Experiments({ project }: { project: string }) {
  const load = useLoad(({ client, signal }) => Array.fromAsync(client.experiments(project, {}, { signal })), ["experiments", project]);
  const title = useNames(project);
  const chosen = here.value.query.get("status") ?? "";
  const button = (id: string, name: string, n: number) => (
    <button key={id} type="button" class="quiet small" aria-pressed={chosen === id} onClick={() => filter({ status: id })}>
      {name} <span class="muted">{count(n)}</span>
    </button>
  );
  return (
    <>
      <PageHead title="Experiments" lead="An experiment shows variants of an embeddable to different visitors, to find the one that works best." />
      <Loaded load={load} what="experiments" rows={6}>
        {(experiments) => {
          const groups = statuses.map((one) => ({ ...one, members: experiments.filter((e) => statusOf(e.status) === one) })).filter(({ members }) => members.length > 0);
          const shown = groups.filter(({ status }) => chosen === "" || chosen === status);
          if (groups.length === 0) return <Empty title="This project has no experiments yet"><p>An experiment appears here when it is stored, also as a draft.</p></Empty>;
          return (
            <>
              <div class="actions" role="group" aria-label="Status">
                {button("", "All", experiments.length)}
                {groups.map(({ status, name, members }) => button(status, name, members.length))}
              </div>
              {shown.length === 0 ? (
                <Empty title="No experiment has this status" />
              ) : (
                <Table
                  region="Table of experiments"
                  around="card"
                  kind="stack"
                  rows={shown.flatMap((group) => group.members.map((e, i) => ({ e, i, ...group })))}
                  id={({ e }) => e.id}
                  columns={[
                    { name: "Experiment", kind: "wide wrap whole", cell: ({ e }) => <a href={address(project, "experiments", e.id)}><Text>{e.name || e.id}</Text></a> },
                    { name: "Result", kind: "wide wrap whole", cell: ({ e, i }) => <Result project={project} e={e} judged={e.status === "running" && i < mostVerdicts} /> },
                    { name: "Embeddable", kind: "wrap muted whole", cell: ({ e }) => <Text>{title(e.flowId)}</Text> },
                    { name: "Status", cell: ({ name, tone }) => <Badge tone={tone}>{name}</Badge> },
                    { name: "Created", kind: "muted", cell: ({ e }) => <Time at={e.created_at} show={day} /> },
                  ]}
                />
              )}
            </>
          );
        }}
      </Loaded>
    </>
  );
}

/** Result says what an experiment found out: which variant won, or what the figures of a running one show. */
function Result({ project, e, judged }: { project: string; e: Experiment; judged: boolean }) {
  const variants = variantsOf(e)?.length;
  return (
    <>
      {e.winner_variant !== null && <><strong><Text>{nameOfWinner(e)}</Text></strong> won{e.outcome && ": "}</>}
      {e.outcome ? <Text most={300}>{e.outcome}</Text> : e.winner_variant !== null ? null : judged ? <Verdict project={project} e={e} /> : <span class="muted">{variants ? `${variants} variants` : "–"}</span>}
    </>
  );
}
