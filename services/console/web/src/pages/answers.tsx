// What visitors answered to each question of an embeddable, and how many of them.
import type { Answers as Distributed } from "@lectern/client";
import { useLoad, useNames } from "../api.ts";
import { type AnswerKey, created, questions, spanOf, usePeriod } from "../insights.ts";
import { filtered, here } from "../router.ts";
import { count, counted, percent } from "../time.ts";
import { BarChart, Share } from "../ui/bars.tsx";
import { FirstEntry } from "../ui/first.tsx";
import { Figure, PageHead, Tabs, Text } from "../ui/parts.tsx";
import { PeriodFilter, spanText } from "../ui/period.tsx";
import { Empty, Loaded, Reversed } from "../ui/state.tsx";

/** Answers lists the questions of an embeddable, and shows the distribution of the answers to one. */
export function Answers({ project, id }: { project: string; id: string }) {
  const { period, inputs } = usePeriod();
  const chosen = here.value.query.get("key");
  const title = useNames(project)(id);
  const load = useLoad(
    async ({ client, signal }) => {
      if (period.reversed) return undefined;
      const span = await spanOf(client, project, period, id, signal);
      return span && { span, of: { embeddable_id: id, ...created(span) }, keys: await questions(client, project, { embeddable_id: id, ...created(span) }, signal) };
    },
    [project, id, ...inputs],
  );
  return (
    <>
      <PageHead title={title} lead="What visitors answered, and how many of them." />
      <Tabs project={project} id={id} current="answers" span={load.value?.span} />
      <form class="filters" aria-label="Filters" onSubmit={(e) => e.preventDefault()}>
        <PeriodFilter period={period} />
      </form>
      <Loaded load={load} what="the questions" rows={6}>
        {(value) =>
          value === undefined ? (
            <Reversed />
          ) : value === null ? (
            <FirstEntry project={project} embeddable={id} wake={load.reload} />
          ) : value.keys.length === 0 ? (
            <Empty title="Nothing was answered in this period" />
          ) : (
            <>
              <p class="muted small">{spanText(value.span)}</p>
              <div class="questions">
                <Questions keys={value.keys} chosen={chosen ?? value.keys[0]?.key ?? ""} />
                <Distribution project={project} of={value.of} name={chosen ?? value.keys[0]?.key ?? ""} />
              </div>
            </>
          )
        }
      </Loaded>
    </>
  );
}

function Questions({ keys, chosen }: { keys: AnswerKey[]; chosen: string }) {
  return (
    <nav class="card" aria-label="Questions">
      <ul class="keylist">
        {keys.map(({ key, entries }) => (
          <li key={key}>
            <a href={filtered({ key })} aria-current={key === chosen ? "true" : undefined}>
              <Text>{key || "(no name)"}</Text> <span class="muted small">{count(entries)}</span>
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function Distribution({ project, of, name }: { project: string; of: { embeddable_id: string }; name: string }) {
  const load = useLoad(({ client, signal }) => client.answers(project, { ...of, key: name }, { signal }), [project, of, name]);
  return (
    <section class="card" aria-labelledby="distribution">
      <h2 id="distribution"><Text>{name || "(no name)"}</Text></h2>
      <Loaded load={load} what="the answers" rows={6}>
        {(value) => <Values value={value} />}
      </Loaded>
    </section>
  );
}

const number = (n: number): string => n.toLocaleString("en-GB", { maximumSignificantDigits: 6 });

function Values({ value }: { value: Distributed }) {
  const { values, others, none, multiple, numbers, unreadable } = value;
  const answered = value.entries - none - unreadable;
  const most = Math.max(others, ...values.map((one) => one.entries));
  return (
    <>
      <p class="muted small" data-answered={answered}>
        {counted(answered, "entry has", "entries have")} an answer, {count(none)} {none === 1 ? "has" : "have"} none. Shares are of those with an answer{multiple > 0 && `, ${multiple < answered ? `of whom ${count(multiple)} may have several` : "who may have several"}`}.{unreadable > 0 && ` The data of ${count(unreadable)} cannot be read.`}
      </p>
      {numbers && (
        <>
          <dl class="figures" aria-label="Numbers">
            <Figure name="Least" id="minimum" value={number(numbers.minimum)} />
            <Figure name="A quarter is at most" id="q1" value={number(numbers.lower_quartile)} />
            <Figure name="Median" id="median" value={number(numbers.median)} />
            <Figure name="A quarter is at least" id="q3" value={number(numbers.upper_quartile)} />
            <Figure name="Greatest" id="maximum" value={number(numbers.maximum)} />
          </dl>
          {numbers.minimum < numbers.maximum && <BarChart label="How many entries have a number in each of 20 equal ranges" axis="Range" bars={numbers.bins.map((bin) => ({ name: `${number(bin.from)} to ${number(bin.to)}`, whole: bin.entries }))} />}
          <h3>Most frequent</h3>
        </>
      )}
      <table class="values">
        <thead>
          <tr>
            <th scope="col">Answer</th>
            <td class="bar" />
            <th scope="col" class="number">Entries</th>
            <th scope="col" class="number">Share</th>
          </tr>
        </thead>
        <tbody>
          {values.map((one, i) => (
            <tr key={i}>
              <th scope="row" class="wrap"><Text>{typeof one.value === "string" ? one.value.slice(0, 300) || "(empty text)" : JSON.stringify(one.value).slice(0, 300)}</Text></th>
              <td class="bar"><Share first={one.entries / most} /></td>
              <td class="number">{count(one.entries)}</td>
              <td class="number">{percent(one.entries / answered)}</td>
            </tr>
          ))}
          {others > 0 && (
            <tr>
              <th scope="row" class="muted">Other answers</th>
              <td class="bar"><Share first={0} second={others / most} /></td>
              <td class="number">{count(others)}</td>
              <td class="number">{percent(others / answered)}</td>
            </tr>
          )}
        </tbody>
      </table>
    </>
  );
}
