import type { DemoResult } from './replay.js';

/** What `list_files` said. */
export interface Listing {
  /** Absent where folders were not asked for. */
  readonly folders: number;
  readonly files: number;
  /** Paths from the root; folders end with `/`. */
  readonly names: readonly string[];
  /** In bytes, by path, of the files that are shown. */
  readonly sizes: ReadonlyMap<string, number>;
  /** Whether every entry is in `names`. */
  readonly isWhole: boolean;
  /** Folders that were not entered. */
  readonly skipped: string;
}

export function readListing(result: DemoResult | undefined): Listing | undefined {
  if (!result?.ok) return undefined;
  const [head = '', ...rest] = result.text.split('\n');
  const counts = /: (?:(\d+) folders?, )?(\d+) files?\b/.exec(head);
  if (!counts) return undefined;
  const notes = rest.filter(isNote);
  const sizes = new Map<string, number>();
  const names = rest
    .filter((line) => line !== '' && !isNote(line))
    .map((line) => {
      const [, name, bytes] = /^(.*) \((\d+) bytes?\)$/.exec(line) ?? [];
      if (name !== undefined) sizes.set(name, Number(bytes));
      return name ?? line.replace(/ \((?:symbolic link|not an ordinary file)\)$/, '');
    });
  return {
    folders: Number(counts[1] ?? 0),
    files: Number(counts[2]),
    names,
    sizes,
    isWhole: !notes.some((note) => /more not shown|stopped after/.test(note)),
    skipped:
      /^\[not entered: ([^;\]]*)/.exec(
        notes.find((note) => note.startsWith('[not entered')) ?? '',
      )?.[1] ?? '',
  };
}

function isNote(line: string): boolean {
  return line.startsWith('[') && line.endsWith(']');
}

/** What `read_file` said. */
export interface FileText {
  readonly name: string;
  readonly bytes: number;
  /** Absent when the file is too large to be counted, or no text. */
  readonly lines?: number;
  readonly isBinary: boolean;
  readonly text: string;
}

export function readFileText(result: DemoResult | undefined): FileText | undefined {
  if (!result?.ok) return undefined;
  const end = result.text.indexOf('\n');
  const head = end === -1 ? result.text : result.text.slice(0, end);
  const found = /^(.*): (?:binary file, )?(\d+) bytes(?:, lines \d+-\d+ (?:of (\d+))?)?/.exec(head);
  if (!found) return undefined;
  const isEmpty = head.endsWith('0 bytes, empty');
  const lines = isEmpty ? '0' : found[3];
  const body = end === -1 ? '' : result.text.slice(end + 1);
  return {
    name: found[1] ?? '',
    bytes: Number(found[2]),
    ...(lines !== undefined && { lines: Number(lines) }),
    isBinary: head.includes(': binary file, '),
    text: body.replace(/\n?\[(?:more: read_file|line \d+ goes on)[^\n]*\]$/, ''),
  };
}

/** What `search_text` said. */
export interface Hits {
  readonly matches: number;
  readonly files: number;
  readonly searched: number;
  /** `file:line: text`, as far as shown. */
  readonly shown: readonly string[];
}

export function readHits(result: DemoResult | undefined): Hits | undefined {
  if (!result?.ok) return undefined;
  const [head = '', ...rest] = result.text.split('\n');
  const counts = /^(\d+) match(?:es)? in (\d+) files? \((\d+) files? searched\)/.exec(head);
  if (!counts) return undefined;
  const shown = rest.filter((line) => /^.+?:\d+: /.test(line));
  return {
    matches: Number(counts[1]),
    files: Number(counts[2]),
    searched: Number(counts[3]),
    shown,
  };
}

/** What can be said of a call when its result is not understood: its error, or its own words. */
export function plainly(tool: string, result: DemoResult | undefined): string {
  if (!result?.ok) return `${tool} did not work: ${result?.text ?? 'it was not called'}`;
  const shown = result.text.length > 600 ? `${result.text.slice(0, 600)}…` : result.text;
  return `${tool} answered:\n${shown}`;
}

export function amount(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : plural}`;
}
