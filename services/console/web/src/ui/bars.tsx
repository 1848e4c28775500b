// Drawings of bars: SVG, so that they can be printed, and are seen with forced colours.
import { useRef, useState } from "preact/hooks";
import { go } from "../router.ts";
import { count, percent } from "../time.ts";
import { type Column, Table } from "./table.tsx";

export interface Bar {
  name: string;
  /** How many entries, and how many of them were completed, if that is the question. */
  whole: number;
  part?: number;
  /** How many of the entries have a page view. It is only in the table. */
  started?: number;
  /** Whether the bar is of a part of its interval. */
  partial?: boolean;
  /** Where a click on the bar leads, if it leads anywhere. */
  to?: string | undefined;
}

/** The height of the chart in pixels. */
const height = 200;

/** ceiling returns the next round number of which the half is whole, at least 4. */
function ceiling(n: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(4, n)));
  return [1, 1.2, 1.6, 2, 3, 4, 6, 8, 10].map((step) => step * power).find((round) => round >= Math.max(4, n)) ?? n;
}

/**
 * BarChart shows a bar for each interval, and says the numbers of the bar under the pointer, of the one that was touched, or of
 * the one that the arrow keys chose. A second touch, or Enter, follows its link. For those who do not see it, there is a table of
 * which axis names the first column.
 */
export function BarChart({ label, axis, bars }: { label: string; axis: string; bars: readonly Bar[] }) {
  const [chosen, setChosen] = useState(-1);
  const touched = useRef(-1);
  const press = (event: KeyboardEvent) => {
    if (event.key === "ArrowRight") setChosen(Math.min(chosen + 1, bars.length - 1));
    else if (event.key === "ArrowLeft") setChosen(Math.max(chosen < 0 ? bars.length - 1 : chosen - 1, 0));
    else if (event.key === "Enter" && bars[chosen]?.to) go(bars[chosen].to);
    else return;
    event.preventDefault();
  };
  const top = ceiling(Math.max(0, ...bars.map((bar) => bar.whole)));
  const step = 100 / Math.max(1, bars.length);
  const y = (n: number) => height - (n / top) * height;
  const rect = (i: number, n: number, kind: string) => n > 0 && <rect class={kind} x={`${(i + 0.12) * step}%`} width={`${0.76 * step}%`} y={Math.min(height - 1, y(n))} height={Math.max(1, height - y(n))} />;
  const named = [...new Set([0, Math.floor((bars.length - 1) / 2), bars.length - 1])].filter((i) => i >= 0);
  const said = ({ name, whole, part }: Bar) => `${name}: ${count(whole)} entries${part === undefined ? "" : `, ${count(part)} completed${whole > 0 ? ` (${percent(part / whole)})` : ""}`}`;
  return (
    <>
      <div class="chart">
        <div class="scale" aria-hidden="true">
          <span>{count(top)}</span>
          <span>{count(top / 2)}</span>
          <span>0</span>
        </div>
        <svg width="100%" height={height} role="group" aria-label={label} tabindex={0} onKeyDown={press} onBlur={() => setChosen(-1)} onPointerLeave={(e) => e.pointerType === "mouse" && setChosen(-1)}>
          {[0, 0.5, 1].map((part) => (
            <line key={part} x1="0" x2="100%" y1={Math.min(height - 0.5, part * height + 0.5)} y2={Math.min(height - 0.5, part * height + 0.5)} />
          ))}
          {bars.map((bar, i) => (
            <a
              key={i}
              class={[bar.partial && "partial", i === chosen && "chosen"].filter(Boolean).join(" ") || undefined}
              href={bar.to}
              tabindex={-1}
              aria-label={`${bar.name}: ${count(bar.whole)}`}
              onPointerEnter={(e) => ((touched.current = e.pointerType === "mouse" || chosen === i ? -1 : i), setChosen(i))}
              onClick={(e) => touched.current === i && (e.preventDefault(), (touched.current = -1))}
            >
              <title>{said(bar)}</title>
              <rect class="behind" x={`${i * step}%`} width={`${step}%`} y="0" height={height} />
              {rect(i, bar.whole, bar.part === undefined ? "part" : "whole")}
              {rect(i, bar.part ?? 0, "part")}
            </a>
          ))}
        </svg>
        <div class="scale across muted small" aria-hidden="true">
          {named.map((i) => (
            <span key={i}>{bars[i]?.name}</span>
          ))}
        </div>
      </div>
      <p class="small said" role="status">{bars[chosen] && said(bars[chosen])}</p>
      <AsTable label={label} axis={axis} bars={bars} />
    </>
  );
}

function AsTable({ label, axis, bars }: { label: string; axis: string; bars: readonly Bar[] }) {
  const columns = ([["Entries", "whole"], ["Started", "started"], ["Completed", "part"]] as const).filter(([, field]) => bars[0]?.[field] !== undefined);
  return (
    <details>
      <summary class="small">As a table</summary>
      <Table
        region={label}
        rows={bars}
        columns={[
          { name: axis, heads: true, cell: ({ name, to }) => (to ? <a href={to}>{name}</a> : name) },
          ...columns.map(([name, field]): Column<Bar> => ({ name, kind: "number", cell: (bar) => count(bar[field] ?? 0) })),
        ]}
      />
    </details>
  );
}

/** Share shows parts of a whole as one bar: the first part dark, the second hatched. Both are from 0 to 1. */
export function Share({ first, second = 0 }: { first: number; second?: number }) {
  const width = (part: number) => `${100 * Math.max(0, Math.min(1, part))}%`;
  return (
    <svg class="share" width="100%" height="18" aria-hidden="true">
      <rect class="behind" width="100%" height="100%" rx="4" />
      {first > 0 && <rect class="part" width={width(first)} height="100%" rx="4" />}
      {second > 0 && <rect class="whole" x={width(first)} width={width(second)} height="100%" rx="4" />}
    </svg>
  );
}

/** Trend shows how numbers went, as a row of small bars. */
export function Trend({ label, values }: { label: string; values: readonly number[] }) {
  const top = Math.max(1, ...values);
  return (
    <svg class="trend" width="96" height="24" role="img" aria-label={label}>
      {values.map((n, i) => (
        <rect key={i} class="part" x={`${(100 * i) / values.length}%`} width={`${80 / values.length}%`} y={24 - Math.max(n > 0 ? 1 : 0, (n / top) * 24)} height={Math.max(n > 0 ? 1 : 0, (n / top) * 24)} />
      ))}
    </svg>
  );
}
