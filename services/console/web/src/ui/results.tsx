// The figures of an experiment's variants while it ran, and how sure their differences are.
import type { Experiment, StatusChange } from "@lectern/client";
import { difference, isSure, type Proportion } from "../difference.ts";
import { alone, flowOf, flowsOf, nameOfVariant, type Ran, ranIn, type Variant, versionOf } from "../experiments.ts";
import { counts, created, sum } from "../insights.ts";
import { useLoad } from "../load.ts";
import { ownSpan } from "../period.ts";
import { address } from "../router.ts";
import { count, day, percent } from "../time.ts";
import { Change, Text } from "./parts.tsx";
import { Loaded } from "./state.tsx";

interface Measured {
  variant: Variant;
  entries: number;
  completed: number;
  /** How many entries of the variant's embeddables have no page view. They are not among the entries. */
  without: number;
}

/** Results compares each variant that has a version or an embeddable of its own with the control. */
export function Results({ project, e, variants, history }: { project: string; e: Experiment; variants: Variant[]; history: StatusChange[] }) {
  const told = alone(variants);
  const ran = ranIn(e, history);
  const span = ownSpan(ran, Date.now(), undefined);
  const load = useLoad<Measured[]>(
    ({ client, signal }) => {
      const reads = new Map<string, ReturnType<typeof counts>>();
      const read = (flow: string, by: "none" | "version") => {
        const found = reads.get(by + flow) ?? counts(client, project, { embeddable_id: flow, interval: "all", by, ...created(span) }, signal);
        reads.set(by + flow, found);
        return found;
      };
      const measure = async (variant: Variant) => {
        const [flow, version] = [flowOf(variant), versionOf(variant)];
        const lists = await Promise.all((flow ? [flow] : flowsOf(e)).map((one) => read(one, version === undefined ? "none" : "version")));
        const { entries, started, completed } = sum(lists.flat().filter((one) => version === undefined || one.version_number === version));
        return { variant, entries: started, completed, without: entries - started };
      };
      return Promise.all(told.map(measure));
    },
    ["results", project, e, created(span)],
  );
  return (
    <section class="card" aria-labelledby="results">
      <h2 id="results">Result</h2>
      {told.length > 0 && (
        <Loaded load={load} what="the figures" rows={2}>
          {(measured) => <Comparison project={project} e={e} measured={measured} ran={ran} />}
        </Loaded>
      )}
      {told.length > 0 && <p class="muted small">Entries with a page view of the variant’s version or embeddable {span.until ? <>from {day(span.from ?? 0)} to {day(span.until - 1)}, both days included</> : <>since {day(span.from ?? 0)}</>}, also those outside of the experiment. An entry that saw two versions counts in both.</p>}
      {told.length < variants.length && (
        <p class="muted small" data-shared>
          {variants.some((one) => !flowOf(one) && versionOf(one) === undefined)
            ? "A variant that names neither a version nor an embeddable has no figures. "
            : "Variants that show the same version have no figures, because their visitors cannot be told apart. "}
          Give each variant a version of its own.
        </p>
      )}
    </section>
  );
}

const rateOf = ({ completed, entries }: Measured): Proportion => ({ some: completed, all: entries });
const ratio = ({ some, all }: Proportion): number => some / all;

/** conclusion says in one sentence whether the figures confirm the winner, or which variant leads. It is "" for a single variant. */
function conclusion({ winner_variant }: Experiment, measured: readonly Measured[]): string {
  const sorted = measured.filter(({ entries }) => entries > 0).sort((a, b) => ratio(rateOf(b)) - ratio(rateOf(a)));
  const winner = sorted.find(({ variant }) => variant.key === winner_variant);
  const first = winner ?? sorted[0];
  const others = measured.filter((one) => one !== first).map(rateOf); // a variant without entries leaves the result open
  if (!first || others.length === 0) return "";
  const rate = rateOf(first);
  const sure = others.every((other) => ratio(rate) > ratio(other) && isSure(rate, other));
  const name = `“${nameOfVariant(first.variant)}”`;
  if (!winner) return sure ? `${name} is completed most often.` : `It is too early to say which variant is completed most often: ${name} leads, which may be chance.`;
  if (sure) return `The figures confirm the winner: ${name} is completed most often.`;
  return others.some((other) => ratio(rate) < ratio(other) && isSure(rate, other)) ? `The figures speak against the winner: another variant is completed more often than ${name}.` : `The figures do not confirm the winner: the difference may be chance.`;
}

function Comparison({ project, e, measured, ran }: { project: string; e: Experiment; measured: Measured[]; ran: Ran }) {
  const control = measured.find(({ variant }) => variant.key === "control") ?? measured[0];
  if (!control) return null;
  const against = nameOfVariant(control.variant);
  const several = measured.length > 1;
  const said = conclusion(e, measured);
  const number = (n: number, to: string | undefined) => (to ? <a href={to}>{count(n)}</a> : count(n));
  return (
    <>
      {said && <p data-conclusion><Text>{said}</Text></p>}
      <table class="results" role="table">
        <thead role="rowgroup">
          <tr role="row">
            <th role="columnheader" scope="col">Variant</th>
            {["Entries", "Completed", "Completion rate"].map((name) => <th key={name} role="columnheader" scope="col" class="number">{name}</th>)}
            {several && <th role="columnheader" scope="col">Against <Text>{against}</Text></th>}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {[control, ...measured.filter((one) => one !== control)].map((one) => (
            <tr role="row" key={one.variant.key} data-variant={one.variant.key}>
              <th role="rowheader" scope="row" class="wrap"><a href={funnelOf(project, e, one.variant, ran)}><Text>{nameOfVariant(one.variant)}</Text></a></th>
              <td role="cell" class="number" data-name="Entries">{number(one.entries, listOf(project, e, one, ran))}</td>
              <td role="cell" class="number" data-name="Completed">{number(one.completed, listOf(project, e, one, ran, "true"))}</td>
              <td role="cell" class="number" data-name="Completion rate">{one.entries > 0 ? percent(one.completed / one.entries) : "–"}</td>
              {several && <td role="cell" class={one === control ? "against control" : "against"} data-name={`Against ${against}`}>{one === control ? <span class="muted">–</span> : <Against one={one} control={control} />}</td>}
            </tr>
          ))}
        </tbody>
      </table>
      {several && (
        <details class="small">
          <summary class="small">How sure this is</summary>
          <p class="muted">
            The interval in brackets has the true difference in 95 of 100 experiments (Newcombe’s hybrid score interval, Statistics in Medicine 17, 1998). While it includes zero, or a variant has fewer than 100 entries, it is too early to say which variant is better. Fix the end of an experiment before it begins: with a look every day and an end at the first “Better”, chance wins more often.
          </p>
        </details>
      )}
    </>
  );
}

function Against({ one, control }: { one: Measured; control: Measured }) {
  if (one.entries === 0 || control.entries === 0) return <span class="muted">Too early to say</span>;
  const [a, b] = [rateOf(one), rateOf(control)];
  const { by, low, high } = difference(a, b);
  const sure = isSure(a, b);
  const points = (n: number) => `${n < 0 ? "−" : "+"}${Math.abs(100 * n).toFixed(1)}`;
  return (
    <>
      {sure ? <Change now={ratio(a)} old={ratio(b)} points /> : `${points(by)} points`} <span class="muted small">({points(low)} to {points(high)})</span>{" "}
      <strong data-verdict>{sure ? (by > 0 ? "Better" : "Worse") : "Too early to say"}</strong>
    </>
  );
}

const filtersOf = (variant: Variant, ran: Ran) => ({ version: versionOf(variant)?.toString(), ...ran });

/** funnelOf returns the address of a variant's funnel. */
const funnelOf = (project: string, e: Experiment, variant: Variant, ran: Ran): string => address(project, "funnel", flowOf(variant) ?? e.flowId, filtersOf(variant, ran));

/** listOf returns the address of exactly the entries of a variant. A list is of one embeddable, and cannot leave out entries without a page view. */
function listOf(project: string, e: Experiment, { variant, without }: Measured, ran: Ran, completed?: "true"): string | undefined {
  const flows = flowsOf(e);
  const embeddable = flowOf(variant) ?? (flows.length === 1 ? flows[0] : undefined);
  return embeddable !== undefined && (without === 0 || completed) ? address(project, "entries", "", { embeddable, completed, ...filtersOf(variant, ran) }) : undefined;
}
