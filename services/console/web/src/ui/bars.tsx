// A chart of stacked bars, one bar a day. uPlot draws it; the legend and the table next to it are HTML.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import "../style/bars.css";
import { theme } from "../preferences.ts";
import { count, day, shortDay } from "../time.ts";
import { Text } from "./parts.tsx";

export interface Series {
  name: string;
  /** One value a day. */
  values: readonly number[];
}

/** How many series have a colour of their own. */
export const colours = 8;

/** resolve returns the colour of a CSS variable in the current theme. */
function resolve(at: HTMLElement, variable: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${variable})`;
  at.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

/** useScheme counts the changes of the colours, by the visitor's choice or by the system's. */
function useScheme(): number {
  const [changes, setChanges] = useState(0);
  const chosen = theme.value;
  useEffect(() => {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const update = () => setChanges((n) => n + 1);
    update();
    dark.addEventListener("change", update);
    return () => dark.removeEventListener("change", update);
  }, [chosen]);
  return changes;
}

/** Bars shows series of daily values. days holds the moments at which the days begin. */
export function Bars({ label, days, series }: { label: string; days: readonly number[]; series: readonly Series[] }) {
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const [hovered, setHovered] = useState<number | null>(null);
  const scheme = useScheme();

  // Each series is drawn from zero to the sum of itself and those below it, the largest sum first.
  const data = useMemo<uPlot.AlignedData>(() => {
    const sums: number[][] = [];
    for (const { values } of series) {
      const below = sums.at(-1);
      sums.push(values.map((value, i) => value + (below?.[i] ?? 0)));
    }
    return [days.map((_, i) => i), ...sums.reverse()];
  }, [days, series]);

  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    const line = resolve(element, "--line");
    const muted = resolve(element, "--muted");
    const font = `12px ${getComputedStyle(element).fontFamily}`;
    const chart = new uPlot(
      {
        width: element.clientWidth,
        height: 240,
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
        scales: { x: { time: false, range: [-0.6, days.length - 0.4] }, y: { range: (_, __, max) => [0, Math.max(4, max * 1.05)] } },
        axes: [
          { stroke: muted, font, grid: { show: false }, ticks: { show: false }, size: 28, space: 64, incrs: [1, 2, 5, 7, 14], values: (_, at) => at.map((i) => (days[i] === undefined ? "" : shortDay(days[i]))) },
          { stroke: muted, font, grid: { stroke: line, width: 1 }, ticks: { show: false }, size: 54, values: (_, at) => at.map((n) => (Number.isInteger(n) ? count(n) : "")) },
        ],
        series: [
          {},
          ...series.map((_, i) => ({
            fill: resolve(element, `--series-${((series.length - 1 - i) % colours) + 1}`),
            width: 0,
            points: { show: false },
            paths: uPlot.paths.bars!({ size: [0.74, 48] }),
          })),
        ],
        hooks: { setCursor: [(u) => setHovered(u.cursor.idx ?? null)] },
      },
      data,
      element,
    );
    plot.current = chart;
    const observer = new ResizeObserver(() => chart.setSize({ width: element.clientWidth, height: 240 }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      chart.destroy();
      plot.current = undefined;
    };
    // setData updates the data. Only other inputs build the chart again.
  }, [scheme, days, series.length]);

  useEffect(() => plot.current?.setData(data), [data]);

  const hoveredDay = hovered === null ? undefined : days[hovered];
  return (
    <figure class="bars">
      <figcaption class="legend" aria-hidden="true">
        <span class="muted">{hoveredDay === undefined ? "All days" : day(hoveredDay)}</span>
        {series.map(({ name, values }, i) => (
          <span key={i} class="item">
            <span class={`swatch series-${(i % colours) + 1}`} /> <Text>{name}</Text> <b>{count((hovered === null ? undefined : values[hovered]) ?? values.reduce((a, b) => a + b, 0))}</b>
          </span>
        ))}
      </figcaption>
      <div ref={frame} class="plot" role="img" aria-label={label} />
      <details>
        <summary class="small">As a table</summary>
        <div class="scroll" tabIndex={0} role="region" aria-label={label}>
          <table>
            <thead>
              <tr>
                <th scope="col">Day</th>
                {series.map(({ name }, i) => (
                  <th key={i} scope="col" class="number">
                    <Text>{name}</Text>
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {days.map((start, i) => (
                <tr key={start}>
                  <th scope="row">{day(start)}</th>
                  {series.map(({ values }, s) => (
                    <td key={s} class="number">
                      {count(values[i] ?? 0)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </figure>
  );
}
