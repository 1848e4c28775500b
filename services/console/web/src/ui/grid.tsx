// A table of any length. Only the rows that are seen are drawn.
import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from "@tanstack/virtual-core";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import "../style/grid.css";

export interface Column<Row> {
  /** Unique among the columns. */
  id: string;
  title: ComponentChildren;
  /** The least width, in rem. */
  width: number;
  cell: (row: Row) => ComponentChildren;
  /** How the rows are sorted by this column, if they can be. */
  sort?: { order: "ascending" | "descending" | "none"; toggle: () => void };
}

interface Props<Row> {
  label: string;
  /** The subject of the rows. Rows about another subject start at the first one. */
  subject: string;
  /** A new array draws all rows again. */
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  /** How many of the rows there are: rows may grow while it stays the same array. */
  count: number;
  /** Says that rows are still to come. */
  busy: boolean;
  open: (row: Row) => void;
}

/** The position in a grid that the visitor left. Returning to the same rows restores it. */
let left: { subject: string; row: number; column: number; top: number } | undefined;

/** The height of a row and of the head, in rem. */
const rowHeight = 2.4;

const remInPixels = () => parseFloat(getComputedStyle(document.documentElement).fontSize);

/**
 * Grid is one tab stop. The arrow keys move through its cells and its head, Page Up and Page Down by the visible rows, Home and
 * End to the first and the last row. Enter opens a row, or sorts by a column of the head.
 */
export function Grid<Row>({ label, subject, columns, rows, count, busy, open }: Props<Row>) {
  const scroller = useRef<HTMLDivElement>(null);
  const [, redraw] = useState(0);
  // Row -1 is the head.
  const [active, setActive] = useState({ row: 0, column: 0 });
  const id = useId();
  const height = useMemo(() => Math.round(rowHeight * remInPixels()), []);
  const last = count - 1;
  const current = { row: Math.min(active.row, last), column: Math.min(active.column, columns.length - 1) };

  const [virtual] = useState(() => new Virtualizer<HTMLDivElement, HTMLDivElement>(options()));
  function options() {
    return {
      count,
      getScrollElement: () => scroller.current,
      estimateSize: () => height,
      scrollMargin: height,
      overscan: 10,
      scrollToFn: elementScroll,
      observeElementRect,
      observeElementOffset,
      onChange: () => redraw((n) => n + 1),
    };
  }
  virtual.setOptions(options());
  useLayoutEffect(() => virtual._didMount(), []);
  useLayoutEffect(() => virtual._willUpdate());

  const back = useRef(left?.subject === subject ? left : undefined);
  useLayoutEffect(() => {
    if (back.current?.subject === subject) return;
    back.current = undefined;
    setActive((before) => ({ ...before, row: Math.min(before.row, 0) }));
    scroller.current?.scrollTo({ top: 0 });
  }, [subject]);
  useLayoutEffect(() => {
    const element = scroller.current;
    const place = back.current;
    if (!element || !place || (busy && count * height < place.top + element.clientHeight)) return;
    back.current = undefined;
    setActive(place);
    element.scrollTop = place.top;
  }, [count, busy]);
  const now = useRef({ subject, ...current });
  now.current = { subject, ...current };
  useLayoutEffect(() => () => void (left = { ...now.current, top: scroller.current?.scrollTop ?? 0 }), []);

  const drawn = virtual.getVirtualItems().map((item) => item.index);
  // The active row stays drawn, so that the keys go on from it wherever it was scrolled to.
  if (current.row >= 0 && !drawn.includes(current.row)) drawn.push(current.row);

  // The place that a key moved to. An effect of the drawing before the key must leave it for the next one.
  const byKey = useRef<{ row: number; column: number } | null>(null);
  useEffect(() => {
    if (byKey.current?.row !== current.row || byKey.current.column !== current.column) return;
    byKey.current = null;
    document.getElementById(cellId(current.row, current.column))?.scrollIntoView({ block: "nearest", inline: "nearest" });
  });

  const cellId = (row: number, column: number) => `${id}-${row}-${column}`;
  const move = (row: number, column = current.column) => {
    byKey.current = { row: Math.max(-1, Math.min(last, row)), column: Math.max(0, Math.min(columns.length - 1, column)) };
    setActive(byKey.current);
  };
  const press = (event: KeyboardEvent) => {
    if (event.metaKey || event.altKey || event.ctrlKey) return;
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 0) / height) - 2);
    const { row, column } = current;
    switch (event.key) {
      case "ArrowDown": move(row + 1); break;
      case "ArrowUp": move(row - 1); break;
      case "ArrowRight": move(row, column + 1); break;
      case "ArrowLeft": move(row, column - 1); break;
      case "PageDown": move(row + page); break;
      case "PageUp": move(Math.max(0, row - page)); break;
      case "Home": move(0); break;
      case "End": move(last); break;
      case "Enter": {
        const opened = rows[row];
        if (row < 0) columns[column]?.sort?.toggle();
        else if (opened !== undefined) open(opened);
        break;
      }
      default: return;
    }
    event.preventDefault();
  };

  const template = useMemo(() => columns.map((column) => `minmax(${column.width}rem, ${column.width}fr)`).join(" "), [columns]);
  const width = columns.reduce((sum, column) => sum + column.width, 0);
  return (
    <div
      ref={scroller}
      class="grid"
      role="grid"
      aria-label={label}
      aria-rowcount={busy ? -1 : count + 1}
      aria-colcount={columns.length}
      aria-busy={busy}
      aria-activedescendant={cellId(current.row, current.column)}
      tabIndex={0}
      data-rows={count}
      style={{ "--columns": template, "--width": `${width}rem`, "--row": `${height}px` }}
      onKeyDown={press}
    >
      <div role="rowgroup" class="gridhead">
        <div role="row" aria-rowindex={1} class="gridrow">
          {columns.map((column, i) => (
            <div
              key={column.id}
              id={cellId(-1, i)}
              role="columnheader"
              aria-colindex={i + 1}
              aria-sort={column.sort?.order}
              class={`${column.sort ? "sortable" : ""} ${current.row === -1 && current.column === i ? "active" : ""}`}
              onClick={column.sort?.toggle}
            >
              {column.title}
              {column.sort && column.sort.order !== "none" && <span aria-hidden="true">{column.sort.order === "ascending" ? " ↑" : " ↓"}</span>}
            </div>
          ))}
        </div>
      </div>
      <div role="rowgroup" class="gridbody" style={{ height: `${virtual.getTotalSize()}px` }}>
        {drawn.map((index) => {
          const row = rows[index];
          if (row === undefined) return null;
          return <Line key={index} row={row} index={index} columns={columns} top={index * height} active={current.row === index ? current.column : -1} cellId={cellId} open={open} />;
        })}
      </div>
    </div>
  );
}

interface LineProps<Row> {
  row: Row;
  index: number;
  columns: readonly Column<Row>[];
  top: number;
  active: number;
  cellId: (row: number, column: number) => string;
  open: (row: Row) => void;
}

function Line<Row>({ row, index, columns, top, active, cellId, open }: LineProps<Row>) {
  const click = (event: MouseEvent) => {
    // A click that ends a selection of text, or that is on a link, does not open the row.
    if (event.defaultPrevented || event.target instanceof Element && event.target.closest("a") || !getSelection()?.isCollapsed) return;
    open(row);
  };
  return useMemo(
    () => (
      <div role="row" aria-rowindex={index + 2} class={`gridrow ${active >= 0 ? "current" : ""}`} style={{ transform: `translateY(${top}px)` }} onClick={click}>
        {columns.map((column, i) => (
          <div key={column.id} id={cellId(index, i)} role="gridcell" aria-colindex={i + 1} class={active === i ? "active" : ""}>
            {column.cell(row)}
          </div>
        ))}
      </div>
    ),
    [row, index, columns, top, active],
  );
}
