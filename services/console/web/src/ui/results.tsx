// The figures of an experiment's variants while it ran, and how sure their differences are.
import type { Experiment, StatusChange } from "@lectern/client";
import { areSure, difference, type Proportion } from "../difference.ts";
import { alone, flowOf, flowsOf, nameOfVariant, type Ran, ranIn, type Variant, variantsOf, versionOf } from "../experiments.ts";
import { counts, created, sum } from "../insights.ts";
import { type Load, useLoad } from "../load.ts";
import { ownSpan, type Span } from "../period.ts";
import { address } from "../router.ts";
import { count, day, percent } from "../time.ts";
import { Change, Text } from "./parts.tsx";
import { Loaded } from "./state.tsx";
import { Table } from "./table.tsx";

interface Measured {
  variant: Variant;
  entries: number;
  completed: number;
  /** How many entries of the variant's embeddables have no page view. They are not among the entries. */
  without: number;
}

interface Measures {
  /** The variants that can be told apart. */
  told: Variant[];
  ran: Ran;
  span: Span;
  load: Load<Measured[]>;
}

/** useMeasures counts the entries of each variant that has a version or an embeddable of its own, once the history is known. */
function useMeasures(project: string, e: Experiment, history: StatusChange[] | undefined): Measures {
  const told = alone(variantsOf(e) ?? []);
  const ran = ranIn(e, history ?? []);
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
    history !== undefined,
  );
  return { told, ran, span, load };
}

/** useHistory reads the statuses that an experiment had. */
export const useHistory = (project: string, id: string): Load<StatusChange[]> => useLoad(({ client, signal }) => client.experimentHistory(project, id, { signal }), ["history", project, id]);

/** Verdict says in one sentence what the figures of an experiment show so far, or how many variants it has. */
export function Verdict({ project, e }: { project: string; e: Experiment }) {
  const { ran, load } = useMeasures(project, e, useHistory(project, e.id).value);
  const control = controlOf(load.value ?? []);
  const said = control && conclusion(e, control, verdictsOf(load.value ?? [], control), ran);
  return said ? <span data-conclusion><Text>{said}</Text></span> : <span class="muted">{`${variantsOf(e)?.length ?? 0} variants`}</span>;
}

/** Results compares each variant that has a version or an embeddable of its own with the control. */
export function Results({ project, e, variants, history }: { project: string; e: Experiment; variants: Variant[]; history: StatusChange[] }) {
  const { told, ran, span, load } = useMeasures(project, e, history);
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

/** controlOf returns the variant that the others are compared with. */
const controlOf = (measured: readonly Measured[]): Measured | undefined => measured.find(({ variant }) => variant.key === "control") ?? measured[0];

/** Judged says whether a variant surely differs from the control, or "" if it may not. */
type Judged = "Better" | "Worse" | "";

/** unsure says that a difference may be chance: more entries may show what it is, unless the experiment has ended. */
const unsure = ({ to }: Ran): string => (to ? "May be chance" : "Too early to say");

/** verdictsOf compares each variant with the control. */
function verdictsOf(measured: readonly Measured[], control: Measured): Map<Measured, Judged> {
  const others = measured.filter((one) => one !== control);
  const sure = areSure(others.map((one) => [rateOf(one), rateOf(control)]));
  return new Map(others.map((one, i) => [one, !sure[i] ? "" : ratio(rateOf(one)) > ratio(rateOf(control)) ? "Better" : "Worse"]));
}

/** conclusion says in one sentence what the verdicts say, or what they say of the decision. It is "" for a single variant. */
function conclusion({ winner_variant }: Experiment, control: Measured, verdicts: Map<Measured, Judged>, ran: Ran): string {
  const name = ({ variant }: Measured) => `“${nameOfVariant(variant)}”`;
  const by = (one: Measured) => {
    const points = 100 * (ratio(rateOf(one)) - ratio(rateOf(control)));
    return `${Math.abs(points).toFixed(1)} points ${points < 0 ? "lower" : "higher"}`;
  };
  if (verdicts.size === 0) return "";
  const sorted = [...verdicts.keys()].sort((a, b) => ratio(rateOf(b)) - ratio(rateOf(a)));
  const better = sorted.find((one) => verdicts.get(one) === "Better");
  const winner = sorted.find(({ variant }) => variant.key === winner_variant);
  if (winner) {
    const chosen = `${name(winner)} was chosen. `;
    if (winner.entries === 0 || control.entries === 0) return `${chosen}There are no entries to compare.`;
    return `${chosen}Its completion rate is ${by(winner)} than that of ${name(control)}${verdicts.get(winner) ? "" : ", which may be chance"}.`;
  }
  if (control.variant.key === winner_variant) return `${name(control)} was chosen. ${better ? `The completion rate of ${name(better)} is ${by(better)}` : "No variant has a surely higher completion rate"}.`;
  if (better) return `${name(better)} is better: its completion rate is ${by(better)} than that of ${name(control)}.`;
  if (sorted.some((one) => verdicts.get(one))) return `No variant is better than ${name(control)}.`;
  return ran.to ? `The experiment ended without a variant that is surely better than ${name(control)}.` : `It is too early to say whether a variant is better than ${name(control)}.`;
}

function Comparison({ project, e, measured, ran }: { project: string; e: Experiment; measured: Measured[]; ran: Ran }) {
  const control = controlOf(measured);
  if (!control) return null;
  const against = nameOfVariant(control.variant);
  const several = measured.length > 1;
  const verdicts = verdictsOf(measured, control);
  const said = conclusion(e, control, verdicts, ran);
  const others = e.impact_metrics?.filter((metric) => !/^complet/i.test(metric)) ?? [];
  const number = (n: number, to: string | undefined) => (to ? <a href={to}>{count(n)}</a> : count(n));
  return (
    <>
      {said && <p data-conclusion><Text>{said}</Text></p>}
      {several && others.length > 0 && <p class="muted small" data-metric><Text>{`Compared by the completion rate, which entries can measure. They cannot measure ${others.join(" and ")}, which the experiment should change.`}</Text></p>}
      <Table
        kind="results"
        rows={[control, ...measured.filter((one) => one !== control)]}
        attributes={(one) => ({ "data-variant": one.variant.key, class: one === control ? "control" : undefined })}
        columns={[
          { name: "Variant", kind: "wrap", heads: true, cell: (one) => <a href={funnelOf(project, e, one.variant, ran)}><Text>{nameOfVariant(one.variant)}</Text></a> },
          { name: "Entries", kind: "number", cell: (one) => number(one.entries, listOf(project, e, one, ran)) },
          { name: "Completed", kind: "number", cell: (one) => number(one.completed, listOf(project, e, one, ran, "true")) },
          { name: "Completion rate", kind: "number", cell: (one) => percent(one.completed / one.entries) },
          several && {
            name: `Against ${against}`,
            head: <>Against <Text>{against}</Text></>,
            kind: "against",
            cell: (one) => (one === control ? <span class="muted">–</span> : <Against one={one} control={control} verdict={verdicts.get(one) || unsure(ran)} />),
          },
        ]}
      />
      {several && (
        <details class="small">
          <summary class="small">How sure this is</summary>
          <p class="muted">
            The interval in brackets has the true difference in 95 of 100 experiments (Newcombe’s hybrid score interval, Statistics in Medicine 17, 1998). “Better” and “Worse” ask for more the more variants there are (Holm’s correction), and for 100 entries on both sides: without a difference, 95 of 100 experiments show none. Fix the end of an experiment before it begins: with a look every day and an end at the first “Better”, chance wins more often.
          </p>
        </details>
      )}
    </>
  );
}

function Against({ one, control, verdict }: { one: Measured; control: Measured; verdict: string }) {
  if (one.entries === 0 || control.entries === 0) return <span class="muted">Nothing to compare</span>;
  const [a, b] = [rateOf(one), rateOf(control)];
  const { by, low, high } = difference(a, b);
  const points = (n: number) => `${n < 0 ? "−" : "+"}${Math.abs(100 * n).toFixed(1)}`;
  return (
    <>
      {verdict !== "Better" && verdict !== "Worse" ? `${points(by)} points` : <Change now={ratio(a)} old={ratio(b)} points />} <span class="muted small">({points(low)} to {points(high)})</span>{" "}
      <strong data-verdict>{verdict}</strong>
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
