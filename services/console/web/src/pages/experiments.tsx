import { collect } from "../api.ts";
import { nameOfWinner, statuses, statusOf, variantsOf } from "../experiments.ts";
import { useLoad } from "../load.ts";
import { useNames } from "../names.ts";
import { address, filter, here } from "../router.ts";
import { count, day } from "../time.ts";
import { Badge, PageHead, Text, Time } from "../ui/parts.tsx";
import { Verdict } from "../ui/results.tsx";
import { Empty, Loaded } from "../ui/state.tsx";

/** How many verdicts the list shows, for each of which it reads figures. */
const mostVerdicts = 20;

/** Experiments lists the experiments of a project, by status, with what each found out. */
export function Experiments({ project }: { project: string }) {
  const load = useLoad(({ client, signal }) => collect(client.experiments(project, {}, { signal })), ["experiments", project]);
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
                <div class="scroll card" tabIndex={0} role="region" aria-label="Table of experiments">
                  <table class="stack" role="table">
                    <thead role="rowgroup">
                      <tr role="row">
                        {["Experiment", "Result", "Embeddable", "Status", "Created"].map((name) => <th key={name} role="columnheader" scope="col">{name}</th>)}
                      </tr>
                    </thead>
                    <tbody role="rowgroup">
                      {shown.flatMap(({ status, name, tone, members }) =>
                        members.map((e, i) => (
                          <tr role="row" key={e.id}>
                            <td role="cell" class="wide wrap whole"><a href={address(project, "experiments", e.id)}><Text>{e.name || e.id}</Text></a></td>
                            <td role="cell" class="wide wrap whole">
                              {e.winner_variant !== null && <><strong><Text>{nameOfWinner(e)}</Text></strong> won{e.outcome && ": "}</>}
                              {e.outcome ? <Text>{e.outcome.slice(0, 300)}</Text> : e.winner_variant !== null ? null : status === "running" && i < mostVerdicts ? <Verdict project={project} e={e} /> : <span class="muted">{variantsOf(e)?.length ? `${variantsOf(e)?.length} variants` : "–"}</span>}
                            </td>
                            <td role="cell" class="wrap muted whole"><Text>{title(e.flowId)}</Text></td>
                            <td role="cell"><Badge tone={tone}>{name}</Badge></td>
                            <td role="cell" class="muted"><Time at={e.created_at} show={day} /></td>
                          </tr>
                        )),
                      )}
                    </tbody>
                  </table>
                </div>
              )}
            </>
          );
        }}
      </Loaded>
    </>
  );
}
