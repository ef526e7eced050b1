/** Tables of the server's commands: columns without lines, so that other programs can cut them, and nothing behind the last one. */
import Table from 'cli-table3';

const NO_LINES = {
  top: '',
  'top-mid': '',
  'top-left': '',
  'top-right': '',
  bottom: '',
  'bottom-mid': '',
  'bottom-left': '',
  'bottom-right': '',
  left: '',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
};

export type PlainTable = {
  readonly head: readonly string[];
  /** Widths to wrap to; as wide as the content when absent. */
  readonly widths?: readonly number[];
};

/** The table and the way to turn it into text. */
export const plainTable = ({ head, widths }: PlainTable) => {
  const table = new Table({
    head: [...head],
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': widths ? 1 : 2 },
    chars: { ...NO_LINES, middle: widths ? ' ' : '' },
    ...(widths ? { wordWrap: true, colWidths: [...widths] } : {}),
  });
  return { table, text: (): string => table.toString().replace(/ +$/gm, '') };
};
