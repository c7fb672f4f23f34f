/** A fenced block of a text: the lines between two lines of backticks or tildes. */
export interface Fence {
  /** The first word after the opening marks; empty if there is none. */
  readonly word: string;
  /** The offsets of the content in UTF-16 units. */
  readonly start: number;
  readonly end: number;
  /** False if the closing line is missing: the content then extends to the end of the text. */
  readonly closed: boolean;
  /** The content without the indentation of the opening line. */
  readonly content: string;
}

/** A line that opens or closes a block: at least three marks of one kind, then the info text. */
interface Mark {
  readonly kind: string;
  readonly length: number;
  readonly info: string;
  readonly indent: number;
}

const MAX_INDENT = 100;
const MARK = /^([ \t]*)(`{3,}|~{3,})/;

/**
 * Finds the outermost fenced blocks of a text, in order.
 *
 * A line of the same mark, at least as long and with nothing after it, closes the block. A line of
 * the same mark with an info word opens a block inside, which has its own closing line, since
 * models write Markdown in Markdown. Marks of the other kind, or shorter ones, are content. Takes
 * linear time.
 */
export function findFences(text: string): Fence[] {
  const found: Fence[] = [];
  let opened: { readonly mark: Mark; readonly start: number } | undefined;
  const lengths: number[] = [];
  for (const { from, to, next } of lines(text)) {
    const mark = readMark(text.slice(from, to));
    if (mark === undefined) continue;
    if (opened === undefined) {
      opened = { mark, start: next };
      lengths.push(mark.length);
      continue;
    }
    if (mark.kind !== opened.mark.kind || mark.length < (lengths.at(-1) ?? 0)) continue;
    if (mark.info === '') lengths.pop();
    else lengths.push(mark.length);
    if (lengths.length > 0) continue;
    found.push(
      createFence(text, opened, { end: Math.max(opened.start, lineBreakBefore(text, from)) }),
    );
    opened = undefined;
  }
  if (opened !== undefined) found.push(createFence(text, opened, {}));
  return found;
}

function* lines(text: string): Generator<{ from: number; to: number; next: number }> {
  for (let from = 0; from < text.length;) {
    const lineBreak = text.indexOf('\n', from);
    const to = lineBreak < 0 ? text.length : lineBreak;
    const next = Math.min(text.length, to + 1);
    yield { from, to, next };
    from = next;
  }
}

function readMark(line: string): Mark | undefined {
  const shown = line.trimEnd();
  const [begin = '', indent = '', marks = ''] = MARK.exec(shown) ?? [];
  const rest = shown.slice(begin.length);
  const kind = marks[0];
  if (kind === undefined || (kind === '`' && rest.includes('`'))) return undefined;
  return {
    kind,
    length: marks.length,
    info: rest.trim(),
    indent: Math.min(indent.length, MAX_INDENT),
  };
}

function lineBreakBefore(text: string, from: number): number {
  const end = from - 1;
  return text[end - 1] === '\r' ? end - 1 : end;
}

function createFence(
  text: string,
  opened: { readonly mark: Mark; readonly start: number },
  {
    end = text.length,
    closed = end < text.length,
  }: { readonly end?: number; readonly closed?: boolean },
): Fence {
  const { info, indent } = opened.mark;
  const raw = text.slice(opened.start, end);
  return {
    word: info.split(/\s/, 1)[0] ?? '',
    start: opened.start,
    end,
    closed,
    content: indent === 0 ? raw : raw.replaceAll(new RegExp(`^[ \\t]{1,${indent}}`, 'gm'), ''),
  };
}
