// The answers to one question: choices with their numbers, numbers in ranges, or the latest texts.
import { isText, readable, text, words } from "../answers.ts";
import { listed } from "../filters.ts";
import { entriesPeriod } from "../insights.ts";
import { figure, toJSON } from "../numbers.ts";
import { answeredIn, type Distribution, kindOf, type Of, shareOf, type Texts } from "../questions.ts";
import { ascending, binRanges, isNumber, rangesOf } from "../ranges.ts";
import { address } from "../router.ts";
import { count, counted, percent } from "../time.ts";
import { useState } from "preact/hooks";
import { Share } from "./bars.tsx";
import { Latest } from "./latest.tsx";
import { Change, More, Named, Opened } from "./parts.tsx";
import { Table } from "./table.tsx";

interface Props {
  project: string;
  of: Of;
  /** The key of the question. */
  name: string;
  title: string;
  /** The texts of its choices, if the definition has some. */
  texts: Texts | undefined;
  given: Distribution;
  /** The answers in the period before, if there is one. */
  before: Distribution | undefined;
}

/** said says how many entries have an answer, and how many have none. */
function said({ none, multiple }: Distribution, answered: number): string {
  if (answered === 0) return "No entry has an answer.";
  const several = multiple === 0 ? "" : multiple < answered ? `, ${count(multiple)} of them with several answers each` : ", several each";
  return `Of ${counted(answered, "entry", "entries")}${several}. ${none === 0 ? "All gave an answer." : `${count(none)} gave no answer.`}`;
}

/** Given shows the answers to a question. */
export function Given(props: Props) {
  const { given, name, title } = props;
  const answered = answeredIn(given);
  const kind = kindOf(given, title, name);
  return (
    <>
      <p class="muted small" data-answered={answered} data-kind={kind}>{said(given, answered)}</p>
      {kind === "numbers" ? <Numbers {...props} answered={answered} /> : kind === "texts" ? <Texts {...props} answered={answered} /> : <Choices {...props} answered={answered} />}
    </>
  );
}

interface Row {
  name: string;
  /** The value of a choice whose name is its text. */
  value?: string | undefined;
  entries: number;
  /** Whether the row stands for all answers that are not listed. */
  other?: boolean;
  /** The share in the period before, if it is known. */
  old?: number | undefined;
  /** The list of the entries. */
  to?: string | undefined;
}

/** How much of an answer is shown, in characters. */
const longest = 300;

/** written writes an answer for people: the text of a choice, or else the value. */
export const written = (json: string, texts: Texts | undefined): string => (texts?.get(text(json)) ?? (isText(json) ? readable(text(json)) || "(empty text)" : words(json, texts))).slice(0, longest);

/** rowsOf makes a row of each value, with the list of the entries that have it. */
function rowsOf({ project, of, name, texts, given: { values }, before }: Props, sorted = values): Row[] {
  return sorted.map(({ value, entries }) => {
    const share = shareOf(before, value);
    return {
      name: written(toJSON(value), texts),
      value: texts?.has(text(toJSON(value))) ? text(toJSON(value)) : undefined,
      entries,
      old: share && share.some / share.all,
      // A list has one answer as a filter.
      to: of.answer ? undefined : address(project, "entries", "", { embeddable: of.embeddable_id, ...listed(of), answer: toJSON(value), answer_key: name, ...entriesPeriod() }),
    };
  });
}

function Choices(props: Props & { answered: number }) {
  const { values, others } = props.given;
  const numbers = others === 0 && values.every(({ value }) => isNumber(value));
  return values.length + others > 0 ? <Counts heading="Answer" rows={rowsOf(props, numbers ? ascending(values) : values)} others={others} answered={props.answered} changes={props.before !== undefined} /> : null;
}

function Numbers(props: Props & { answered: number }) {
  const { values, others, numbers } = props.given;
  const { answered, before } = props;
  const exact = rangesOf(values);
  const whole = others === 0;
  const ranges = whole ? exact.ranges : numbers ? binRanges(numbers) : [];
  return (
    <>
      {numbers && (
        <p class="small">
          Median <b data-figure="median">{figure(numbers.median)}</b>{before?.numbers && <span class="muted"> ({figure(before.numbers.median)} before)</span>}, half of them from {figure(numbers.lower_quartile)} to {figure(numbers.upper_quartile)}, all from <span data-figure="minimum">{whole ? exact.least : figure(numbers.minimum)}</span> to <span data-figure="maximum">{whole ? exact.greatest : figure(numbers.maximum)}</span>.
        </p>
      )}
      <Counts heading="Range" rows={ranges} others={whole ? 0 : answered - (numbers?.entries ?? 0)} answered={answered} />
      {values.length > 0 && <details>
        <summary class="small">{whole ? "Each number" : `The ${values.length} most frequent numbers`}</summary>
        <Counts heading="Answer" rows={rowsOf(props, whole ? ascending(values) : values)} others={others} answered={answered} complete />
      </details>}
    </>
  );
}

function Texts(props: Props & { answered: number }) {
  const often = props.given.values.filter(({ entries }) => entries > 1);
  return (
    <>
      <Opened name="The latest answers">{() => <Latest {...props} />}</Opened>
      {often.length > 0 && (
        <details>
          <summary class="small">Answers that were given more than once</summary>
          <Counts heading="Answer" rows={rowsOf(props, often)} others={0} answered={props.answered} />
        </details>
      )}
    </>
  );
}

/** How many rows a table has at first. A few more are no reason for a button. */
const rowsAtFirst = 10;
const rowsMore = 2;

/** Counts shows how many entries gave each answer. Shares, and their changes, are of those with an answer. */
function Counts({ heading, rows, others, answered, changes = false, complete = false }: { heading: string; rows: Row[]; others: number; answered: number; changes?: boolean; complete?: boolean }) {
  const [wanted, setWanted] = useState(complete);
  const all = wanted || rows.length <= rowsAtFirst + rowsMore;
  return (
    <>
      <Table
        kind="values"
        rows={!all ? rows.slice(0, rowsAtFirst) : others > 0 ? [...rows, { name: "Other answers", entries: others, other: true }] : rows}
        columns={[
          { name: heading, heads: true, cell: ({ name, value, entries, other }) => <div><span class={other ? "muted" : "wrap"}><Named name={name} code={value} /></span> <Share first={other ? 0 : entries / answered} second={other ? entries / answered : 0} /></div> },
          { name: "Entries", kind: "number", cell: ({ entries, to }) => (to ? <a href={to}>{count(entries)}</a> : count(entries)) },
          { name: "Share", kind: "number", cell: ({ entries }) => percent(entries / answered) },
          changes && { name: "Change", kind: "number muted", cell: ({ entries, old }) => (old === undefined ? "–" : <Change now={entries / answered} old={old} points />) },
        ]}
      />
      {!all && <More show={() => setWanted(true)}>Show all {rows.length} answers</More>}
    </>
  );
}
