import type { Experiment, StatusChange } from "@lectern/client";
import { attachmentsOf, flowsOf, nameOfVariant, nameOfWinner, statusOf, type Variant, variantsOf } from "../experiments.ts";
import { useLoad } from "../load.ts";
import { useNames } from "../names.ts";
import { address } from "../router.ts";
import { duration } from "../time.ts";
import { Badge, Field, PageHead, Text, Time } from "../ui/parts.tsx";
import { Results, useHistory } from "../ui/results.tsx";
import { Loaded } from "../ui/state.tsx";
import { type Column, Table } from "../ui/table.tsx";
import { LongText } from "../ui/value.tsx";

/** ExperimentPage shows one experiment: its hypothesis, its variants, its outcome and its history. */
export function ExperimentPage({ project, id }: { project: string; id: string }) {
  const title = useNames(project);
  const load = useLoad(({ client, signal }) => client.experiment(project, id, { signal }), ["experiment", project, id]);
  const history = useHistory(project, id);
  return (
    <>
      <PageHead title={load.value?.name || id} lead={<>{load.value && <>Compares variants of <a href={address(project, "funnel", load.value.flowId)}><Text>{title(load.value.flowId)}</Text></a>. </>}{load.state !== "failed" && <code class="wrap">{id}</code>}</>}>
        {load.value && <StatusBadge status={load.value.status} />}
      </PageHead>
      <Loaded load={load} what="the experiment" rows={6}>
        {(e) => (
          <>
            {e.winner_variant !== null && <Winner e={e} />}
            {/* Figures help to see why a variant won. The page also works without them. */}
            {variantsOf(e)?.length && history.value ? <Results project={project} e={e} variants={variantsOf(e) ?? []} history={history.value} /> : null}
            <Variants e={e} variants={variantsOf(e)} />
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

function VariantName({ e, variant }: { e: Experiment; variant: Variant }) {
  const name = nameOfVariant(variant);
  return (
    <>
      <strong><Text>{name}</Text></strong> {name !== variant.key && <Text>{variant.key}</Text>} {e.winner_variant === variant.key && <Badge tone="good">Winner</Badge>} {e.paused_showing_variant === variant.key && <Badge tone="busy">Shown while paused</Badge>}
    </>
  );
}

function Variants({ e, variants }: { e: Experiment; variants: Variant[] | undefined }) {
  const sorted = [...(variants ?? [])].sort((a, b) => Number(b.key === e.winner_variant) - Number(a.key === e.winner_variant));
  const names = [...new Set(sorted.flatMap(({ fields }) => fields.map(([name]) => name)))].filter((name) => name !== "name").slice(0, 12);
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
        <Table
          region="Table of variants"
          kind="variants"
          rows={sorted}
          columns={[
            { name: "Variant", kind: "wrap", heads: true, cell: (variant) => <VariantName e={e} variant={variant} /> },
            ...names.map((name): Column<Variant> => ({
              name: name ? name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " ") : "Value",
              kind: "wrap",
              cell: ({ fields }) => <Words text={fields.find(([field]) => field === name)?.[1] ?? null} />,
            })),
          ]}
        />
      )}
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
