import { collect, useLoad } from "../api.ts";
import { statuses, variantsOf } from "../experiments.ts";
import { address, filter, here } from "../router.ts";
import { count, day } from "../time.ts";
import { Badge, PageHead, Text, Time } from "../ui/parts.tsx";
import { Empty, Loaded } from "../ui/state.tsx";

/** Experiments lists the experiments of a project, by status. */
export function Experiments({ project }: { project: string }) {
  const load = useLoad(({ client, signal }) => collect(client.experiments(project, {}, { signal })), [project]);
  const chosen = here.value.query.get("status") ?? "";
  return (
    <>
      <PageHead title="Experiments" lead="An experiment shows variants of an embeddable to different visitors, to find the one that works best." />
      <Loaded load={load} what="experiments" rows={6}>
        {(experiments) => {
          // An experiment may have no status, or one that this version of the console does not know.
          const known = new Set<string | null>(statuses.map(({ status }) => status));
          const groups = [
            ...statuses.map(({ status, name, tone }) => ({ id: status as string, name, tone, members: experiments.filter((e) => e.status === status) })),
            { id: "none", name: "No status", tone: "off" as const, members: experiments.filter((e) => !known.has(e.status)) },
          ].filter(({ members }) => members.length > 0);
          if (groups.length === 0) return <Empty title="This project has no experiments yet" />;
          return (
            <>
              <div class="actions" role="group" aria-label="Status">
                <button type="button" class="quiet small" aria-pressed={chosen === ""} onClick={() => filter({ status: "" })}>
                  All <span class="muted">{count(experiments.length)}</span>
                </button>
                {groups.map(({ id, name, members }) => (
                  <button key={id} type="button" class="quiet small" aria-pressed={chosen === id} onClick={() => filter({ status: id })}>
                    {name} <span class="muted">{count(members.length)}</span>
                  </button>
                ))}
              </div>
              {groups
                .filter(({ id }) => chosen === "" || chosen === id)
                .map(({ id, name, tone, members }) => (
                  <section key={id} class="card" aria-labelledby={`status-${id}`}>
                    <h2 id={`status-${id}`}>
                      <Badge tone={tone}>{name}</Badge>
                    </h2>
                    <ul class="rows aligned">
                      {members.map((e) => (
                        <li key={e.id}>
                          <a href={address(project, "experiments", e.id)}>
                            <Text>{e.name || e.id}</Text>
                          </a>
                          <span class="muted">{e.winner_variant !== null ? <>Winner: <Text>{e.winner_variant}</Text></> : variantsOf(e)?.length ? `${variantsOf(e)?.length} variants` : ""}</span>
                          <span class="muted small number">
                            <Time at={e.created_at} show={day} />
                          </span>
                        </li>
                      ))}
                    </ul>
                  </section>
                ))}
              {chosen !== "" && !groups.some(({ id }) => id === chosen) && <Empty title="No experiment has this status" />}
            </>
          );
        }}
      </Loaded>
    </>
  );
}
