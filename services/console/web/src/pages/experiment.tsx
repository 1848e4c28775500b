import type { Experiment, StatusChange } from "@lectern/client";
import type { ComponentChildren } from "preact";
import { useLoad, useNames } from "../api.ts";
import { attachmentsOf, statuses, type Variant, variantsOf } from "../experiments.ts";
import { counts, created } from "../insights.ts";
import { address } from "../router.ts";
import { duration, percent } from "../time.ts";
import { Badge, PageHead, Text, Time } from "../ui/parts.tsx";
import { Loaded } from "../ui/state.tsx";
import { LongText } from "../ui/value.tsx";

/** ExperimentPage shows one experiment: its hypothesis, its variants, its outcome and its history. */
export function ExperimentPage({ project, id }: { project: string; id: string }) {
  const load = useLoad(({ client, signal }) => client.experiment(project, id, { signal }), [project, id]);
  const history = useLoad(({ client, signal }) => client.experimentHistory(project, id, { signal }), [project, id]);
  return (
    <>
      <PageHead title={load.value?.name || id} lead={<code class="wrap">{id}</code>}>
        {load.value && <StatusBadge status={load.value.status} />}
      </PageHead>
      <Loaded load={load} what="the experiment" rows={6}>
        {(e) => (
          <>
            {e.winner_variant !== null && <Winner e={e} />}
            <Variants project={project} e={e} />
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
  const known = statuses.find((s) => s.status === status);
  return <Badge tone={known?.tone ?? "off"}>{known?.name ?? status ?? "No status"}</Badge>;
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
  return (
    <ul class="names">
      {of.map((name, i) => (
        <li key={i}>
          <Text>{name}</Text>
        </li>
      ))}
    </ul>
  );
}

function About({ project, e }: { project: string; e: Experiment }) {
  const attachments = attachmentsOf(e);
  const nameOfFlow = useNames(project);
  const flows = [...new Set([e.flowId, ...(e.flow_ids ?? [])])];
  return (
    <section class="card" aria-labelledby="about">
      <h2 id="about">About</h2>
      <dl class="fields">
        <Field name="Hypothesis">
          <Words text={e.hypothesis} />
        </Field>
        <Field name="Observations">
          <Words text={e.observations} />
        </Field>
        <Field name="Outcome">
          <Words text={e.outcome} />
        </Field>
        <Field name="Should move">
          <Names of={e.impact_metrics} />
        </Field>
        <Field name="Should not move">
          <Names of={e.no_impact_metrics} />
        </Field>
        <Field name="Flows">
          <ul class="names">
            {flows.map((flow) => (
              <li key={flow}>
                <a href={address(project, "embeddables", flow)}>
                  <Text>{nameOfFlow(flow)}</Text>
                </a>
              </li>
            ))}
          </ul>
        </Field>
        <Field name="Attachments">
          {attachments === undefined ? (
            <code class="wrap">
              <Words text={e.attachments} />
            </code>
          ) : attachments.length === 0 ? (
            <span class="muted">–</span>
          ) : (
            <ul>
              {attachments.map(({ name, url }, i) => (
                <li key={i} class="wrap">
                  <Text>{name}</Text>
                  {/* The address comes from data, so it is text and not a link. */}
                  {url && url !== name && (
                    <>
                      {" "}
                      <code class="muted">
                        <Text>{url}</Text>
                      </code>
                    </>
                  )}
                </li>
              ))}
            </ul>
          )}
        </Field>
        <Field name="Created">
          <Time at={e.created_at} />
        </Field>
        <Field name="Updated">
          <Time at={e.updated_at} />
        </Field>
      </dl>
    </section>
  );
}

/** Winner says which variant won, and why. */
function Winner({ e }: { e: Experiment }) {
  const name = variantsOf(e)?.find(({ key }) => key === e.winner_variant)?.fields.find(([field]) => field === "name")?.[1];
  return (
    <p class="lead" data-winner>
      <Badge tone="good">Winner</Badge> <strong><Text>{name || e.winner_variant || "–"}</Text></strong>
      {name && <span class="muted"> (<Text>{e.winner_variant ?? ""}</Text>)</span>}
      {e.outcome && <>: <LongText>{e.outcome}</LongText></>}
    </p>
  );
}

/** versionOf returns the version of the embeddable that a variant shows, if it says one. */
function versionOf({ fields }: Variant): number | undefined {
  const value = Number(fields.find(([name]) => name === "version_number" || name === "embeddable_version_number")?.[1] ?? NaN);
  return Number.isSafeInteger(value) ? value : undefined;
}

function Variants({ project, e }: { project: string; e: Experiment }) {
  const variants = variantsOf(e);
  // Figures help to see why a variant won. The page also works without them.
  const rates = useLoad(
    ({ client, signal }) => counts(client, project, { embeddable_id: e.flowId, interval: "all", by: "version", ...created({ from: Date.parse(e.created_at), until: undefined }) }, signal),
    [project, e.flowId, e.created_at],
  );
  const sorted = [...(variants ?? [])].sort((a, b) => Number(b.key === e.winner_variant) - Number(a.key === e.winner_variant));
  const names = [...new Set(sorted.flatMap(({ fields }) => fields.map(([name]) => name)))].slice(0, 12);
  const rated = rates.value && sorted.some((variant) => versionOf(variant) !== undefined);
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
                  <th key={name} scope="col"><Text>{name.replaceAll("_", " ") || "Value"}</Text></th>
                ))}
                {rated && <th scope="col" class="number">Completion rate of the version</th>}
                <th scope="col"><span class="hidden">Links</span></th>
              </tr>
            </thead>
            <tbody>
              {sorted.map((variant) => {
                const { key, fields } = variant;
                const version = versionOf(variant);
                const figures = rates.value?.find((one) => one.version_number === version && version !== undefined);
                return (
                  <tr key={key}>
                    <th scope="row" class="wrap">
                      <Text>{key}</Text> {e.winner_variant === key && <Badge tone="good">Winner</Badge>} {e.paused_showing_variant === key && <Badge tone="busy">Shown while paused</Badge>}
                    </th>
                    {names.map((name) => (
                      <td key={name} class="wrap"><Words text={fields.find(([field]) => field === name)?.[1] ?? null} /></td>
                    ))}
                    {rated && <td class="number">{figures && figures.started > 0 ? percent(figures.completed / figures.started) : <span class="muted">–</span>}</td>}
                    <td class="links">{version !== undefined && <a href={address(project, "funnel", e.flowId, { version: String(version), days: "0" })}><span class="hidden">{key}: </span>Funnel</a>}</td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      )}
      {rated && <p class="muted small">The completion rate is that of all entries of the version since the experiment was created, also of those outside of the experiment.</p>}
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
              <Time at={change.changed_at} />
              <span class="muted small"> {next ? `for ${duration(Date.parse(next.changed_at) - Date.parse(change.changed_at))}` : "until now"}</span>
            </span>
          </li>
        );
      })}
    </ol>
  );
}
