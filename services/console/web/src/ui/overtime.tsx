// The answers to one question over time.
import { useState } from "preact/hooks";
import { useLoad } from "../load.ts";
import { intervalOf, type Span } from "../period.ts";
import { toJSON } from "../numbers.ts";
import { zone } from "../preferences.ts";
import type { Of, Texts } from "../questions.ts";
import { day, hour, shortDay } from "../time.ts";
import { BarChart } from "./bars.tsx";
import { written } from "./given.tsx";
import { Select } from "./parts.tsx";
import { Loaded } from "./state.tsx";

/** OverTime shows how many entries of each interval have one answer, which the visitor chooses. */
export function OverTime({ project, of, span, name, texts }: { project: string; of: Of; span: Span; name: string; texts: Texts | undefined }) {
  const [chosen, setChosen] = useState(0);
  const interval = intervalOf(span);
  const { from: first = -Infinity, until = Infinity } = span;
  const load = useLoad(({ client, signal }) => client.answers(project, { ...of, key: name, interval, timezone: zone.peek() }, { signal }), ["over time", project, of, name, interval, zone.value]);
  return (
    <Loaded load={load} what="the answers" rows={6}>
      {({ values, intervals = [] }) => {
        const one = values[chosen] ?? values[0];
        const bars = intervals.map(({ from, to }, i) => {
          const begin = Date.parse(from);
          const partial = begin < first || Date.parse(to) > until;
          const at = Math.max(begin, first);
          return { name: interval === "hour" ? hour(at) : interval === "day" ? shortDay(at) : `${day(at)}${partial ? `, a part of the ${interval}` : ""}`, partial, whole: one?.by_interval?.[i] ?? 0 };
        });
        return (
          <>
            <p><Select label="Answer" value={chosen} options={values.map(({ value }, i) => [String(i), written(toJSON(value), texts)])} choose={(i) => setChosen(Number(i))} /></p>
            <BarChart label={`Entries with the answer, by ${interval}`} axis={`Begin of the ${interval}`} bars={bars} />
          </>
        );
      }}
    </Loaded>
  );
}
