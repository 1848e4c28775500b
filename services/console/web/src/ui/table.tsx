// Tables of which each column is written down once: its head and its cells.
import type { ComponentChildren } from "preact";

/** Column is a column of a table. */
export interface Column<T> {
  /** The name in the head. In narrow windows, where each row is a block, a cell says it. */
  name: string;
  /** What the head shows in place of the name. */
  head?: ComponentChildren;
  /** The classes of the head and of the cells. */
  kind?: string;
  /** Whether the cells are the heads of their rows. */
  heads?: boolean;
  cell: (row: T) => ComponentChildren;
}

interface Props<T> {
  /** A column that is undefined or false is left out. */
  columns: readonly (Column<T> | undefined | false)[];
  rows: readonly T[];
  /** The classes of the table. */
  kind?: string;
  /** The label of a region in which a wide table scrolls, and classes of the region. */
  region?: string;
  around?: string;
  /** The id of a row, so that its elements stay if rows move, and its attributes. */
  id?: (row: T) => string;
  attributes?: (row: T) => Record<string, unknown>;
}

/** Table shows rows. The roles are for narrow windows: browsers take a row that the style makes a block for no row. */
export function Table<T>({ columns, rows, kind, region, around = "", id, attributes }: Props<T>) {
  const shown = columns.filter((one) => !!one);
  const table = (
    <table class={kind} role="table">
      <thead role="rowgroup">
        <tr role="row">
          {shown.map(({ name, head = name, kind }, column) => <th key={column} role="columnheader" scope="col" class={kind}>{head}</th>)}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {rows.map((row, i) => (
          <tr key={id ? id(row) : i} role="row" {...attributes?.(row)}>
            {shown.map(({ name, kind, heads, cell }, column) =>
              heads ? <th key={column} role="rowheader" scope="row" class={kind}>{cell(row)}</th> : <td key={column} role="cell" class={kind} data-name={name}>{cell(row)}</td>,
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
  return region ? <div class={`scroll ${around}`} tabIndex={0} role="region" aria-label={region}>{table}</div> : table;
}
