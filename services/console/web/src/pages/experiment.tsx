import type { Experiment, StatusChange } from "@lectern/client";
import type { ComponentChildren } from "preact";
import { useLoad, useNames } from "../api.ts";
import { attachmentsOf, flowsOf, nameOfWinner, statusOf, type Variant, variantsOf } from "../experiments.ts";
import { counts, created, sum } from "../insights.ts";
import { address } from "../router.ts";
import { count, day, duration, isoDay, percent } from "../time.ts";
import { Badge, PageHead, Text, Time } from "../ui/parts.tsx";
import { Loaded } from "../ui/state.tsx";
import { LongText } from "../ui/value.tsx";

/** ExperimentPage shows one experiment: its hypothesis, its variants, its outcome and its history. */
export function ExperimentPage({ project, id }: { project: string; id: string }) {
  const title = useNames(project);
  const load = useLoad(({ client, signal }) => client.experiment(project, id, { signal }), [project, id]);
  const history = useLoad(({ client, signal }) => client.experimentHistory(project, id, { signal }), [project, id]);
  return (
    <>
      <PageHead title={load.value?.name || id} lead={<>{load.value && <>Compares variants of <a href={address(project, "funnel", load.value.flowId)}><Text>{title(load.value.flowId)}</Text></a>. </>}<code class="wrap">{id}</code></>}>
        {load.value && <StatusBadge status={load.value.status} />}
      </PageHead>
      <Loaded load={load} what="the experiment" rows={6}>
        {(e) => (
          <>
            {e.winner_variant !== null && <Winner e={e} />}
            <Variants project={project} e={e} history={history.value} />
            <div class="columns">
              <About project={project} e={e} />
              {/* A history that does not exist is the experiment's own 404, which is shown above. */}
              <section class="card" aria-labelledby="history">
                <h2 id="history">History</h2>
                <Loaded load={history} what="the history" rows={2}>
                  {(changes) => <History changes={changes} />}
                </Loaded>
              </section>
            </div>
          </>
        )}
      </Loaded>
    </>
  );
}

function StatusBadge({ status }: { status: string | null }) {
  const { name, tone } = statusOf(status);
  return <Badge tone={tone}>{name === "No status" && status ? <Text>{status}</Text> : name}</Badge>;
}

function Field({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Words({ text }: { text: string | null }) {
  return text === null || text === "" ? <span class="muted">–</span> : <LongText>{text}</LongText>;
}

function Names({ of }: { of: readonly string[] | null | undefined }) {
  if (!of || of.length === 0) return <span class="muted">–</span>;
  return <ul class="names">{of.map((name, i) => <li key={i}><Text>{name}</Text></li>)}</ul>;
}

function About({ project, e }: { project: string; e: Experiment }) {
  const attachments = attachmentsOf(e);
  const title = useNames(project);
  return (
    <section class="card" aria-labelledby="about">
      <h2 id="about">About</h2>
      <dl class="fields">
        <Field name="Hypothesis"><Words text={e.hypothesis} /></Field>
        <Field name="Observations"><Words text={e.observations} /></Field>
        <Field name="Outcome"><Words text={e.outcome} /></Field>
        <Field name="Should change"><Names of={e.impact_metrics} /></Field>
        <Field name="Should not change"><Names of={e.no_impact_metrics} /></Field>
        <Field name="Embeddables">
          <ul class="names">
            {flowsOf(e).map((flow) => <li key={flow}><a href={address(project, "funnel", flow)}><Text>{title(flow)}</Text></a></li>)}
          </ul>
        </Field>
        <Field name="Attachments">
          {attachments === undefined ? (
            <code class="wrap"><Words text={e.attachments} /></code>
          ) : attachments.length === 0 ? (
            <span class="muted">–</span>
          ) : (
            // The address comes from data, so it is text and not a link.
            <ul>{attachments.map(({ name, url }, i) => <li key={i} class="wrap"><Text>{name}</Text> {url && url !== name && <code class="muted"><Text>{url}</Text></code>}</li>)}</ul>
          )}
        </Field>
        <Field name="Created"><Time at={e.created_at} /></Field>
        <Field name="Updated"><Time at={e.updated_at} /></Field>
      </dl>
    </section>
  );
}

/** Winner says which variant won, and why. */
function Winner({ e }: { e: Experiment }) {
  return (
    <p class="lead" data-winner>
      <Badge tone="good">Winner</Badge> <strong><Text>{nameOfWinner(e)}</Text></strong>{e.outcome && <>: <LongText>{e.outcome}</LongText></>}
    </p>
  );
}

/** ranFrom returns when an experiment began to run, and when it ended, if it has. */
function ranFrom(e: Experiment, history: StatusChange[]): { from: number; until: number | undefined } {
  const runs = (change: StatusChange) => change.status === "running" || change.status === "paused";
  const began = history.find(runs)?.changed_at ?? e.created_at;
  const ended = history[history.findLastIndex(runs) + 1]?.changed_at;
  return { from: Date.parse(began), until: ended === undefined || e.status === "draft" ? undefined : Date.parse(ended) };
}

/** versionOf returns the version of the embeddable that a variant shows, if it says one. */
function versionOf({ fields }: Variant): number | undefined {
  const value = Number(fields.find(([name]) => name === "version_number" || name === "embeddable_version_number")?.[1] ?? NaN);
  return Number.isSafeInteger(value) ? value : undefined;
}

function Variants({ project, e, history }: { project: string; e: Experiment; history: StatusChange[] | undefined }) {
  const variants = variantsOf(e);
  // Figures help to see why a variant won. The page also works without them.
  const rates = useLoad(
    async ({ client, signal }) => {
      if (!history) return undefined;
      const ran = ranFrom(e, history);
      const ofFlows = await Promise.all(flowsOf(e).map((flow) => counts(client, project, { embeddable_id: flow, interval: "all", by: "version", ...created(ran) }, signal)));
      return { ran, counts: ofFlows.flat() };
    },
    [project, e, history],
  ).value;
  const sorted = [...(variants ?? [])].sort((a, b) => Number(b.key === e.winner_variant) - Number(a.key === e.winner_variant));
  const names = [...new Set(sorted.flatMap(({ fields }) => fields.map(([name]) => name)))].filter((name) => name !== "name").slice(0, 12);
  // Visitors of variants with the same version cannot be told apart.
  const versioned = sorted.filter((variant) => versionOf(variant) !== undefined);
  const alone = versioned.filter((variant) => versioned.every((other) => other === variant || versionOf(other) !== versionOf(variant)));
  const rated = rates && alone.length > 0;
  const days = rates && { from: isoDay(rates.ran.from), to: isoDay(rates.ran.until ?? Date.now()) };
  return (
    <section class="card" aria-labelledby="variants">
      <h2 id="variants">Variants</h2>
      {variants === undefined ? (
        <>
          <p class="muted small">The variants are not a JSON object. They are shown as they are stored.</p>
          <pre class="raw">
            <Words text={e.variants} />
          </pre>
        </>
      ) : variants.length === 0 ? (
        <p class="muted">No variants yet.</p>
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-label="Table of variants">
          <table class="variants">
            <thead>
              <tr>
                <th scope="col">Variant</th>
                {names.map((name) => (
                  <th key={name} scope="col"><Text>{name ? name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " ") : "Value"}</Text></th>
                ))}
                {rated && ["Started", "Completed", "Completion rate"].map((name) => <th key={name} scope="col" class="number">{name}</th>)}
                <th scope="col"><span class="hidden">Links</span></th>
              </tr>
            </thead>
            <tbody>
              {sorted.map((variant) => {
                const { key, fields } = variant;
                const version = versionOf(variant);
                const name = fields.find(([field]) => field === "name")?.[1];
                const seen = alone.includes(variant) ? (rates?.counts ?? []).filter((one) => one.version_number === version) : [];
                const figures = seen.length > 0 ? sum(seen) : undefined;
                return (
                  <tr key={key}>
                    <th scope="row" class="wrap">
                      <strong><Text>{name || key}</Text></strong> {name && <Text>{key}</Text>} {e.winner_variant === key && <Badge tone="good">Winner</Badge>} {e.paused_showing_variant === key && <Badge tone="busy">Shown while paused</Badge>}
                    </th>
                    {names.map((name) => (
                      <td key={name} class="wrap"><Words text={fields.find(([field]) => field === name)?.[1] ?? null} /></td>
                    ))}
                    {rated && [figures && count(figures.started), figures && count(figures.completed), figures && figures.started > 0 && percent(figures.completed / figures.started)].map((text, i) => (
                      <td key={i} class="number">{text || <span class="muted">–</span>}</td>
                    ))}
                    <td class="links">{version !== undefined && <a href={address(project, "funnel", e.flowId, { version: String(version), ...days })}><span class="hidden">{key}: </span>Funnel</a>}</td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      )}
      {rated && <p class="muted small">The figures are of all visitors who saw the version {rates.ran.until ? <>from {day(rates.ran.from)} to {day(rates.ran.until)}</> : <>since {day(rates.ran.from)}</>}, also of those outside of the experiment.</p>}
      {alone.length < versioned.length && <p class="muted small" data-shared>Variants that show the same version have no figures, because their visitors cannot be told apart. Give each variant a version of its own.</p>}
    </section>
  );
}

function History({ changes }: { changes: StatusChange[] }) {
  if (changes.length === 0) return <p class="muted">The status was never set.</p>;
  return (
    <ol class="history">
      {changes.map((change, i) => {
        const next = changes[i + 1];
        return (
          <li key={i}>
            <StatusBadge status={change.status} />
            <span>
              {next ? "" : "since "}<Time at={change.changed_at} />
              {next && <span class="muted small"> for {duration(Date.parse(next.changed_at) - Date.parse(change.changed_at))}</span>}
            </span>
          </li>
        );
      })}
    </ol>
  );
}
