import type { DeltaEvent, StreamEvent } from '../../live/stream-events.js';
import { visible } from '../../core/text/summaries.js';
import { printable } from '../../core/text/hidden.js';
import type { Palette } from '../format/output.js';

/** The last lines of what a model is saying, for the part of the screen that is drawn anew. */
export interface LiveText {
  /** @returns whether the lines are others now */
  hear(event: StreamEvent): boolean;
  lines(columns: number): readonly string[];
}

const TEXT_LINES = 6;
const THOUGHT_LINES = 2;
/** More than so many UTF-16 units do not fit into the lines. */
const KEPT_UNITS = 4_000;
/** Sets off what a model says, so that it cannot pass for one of our own lines. */
const MARK = '│ ';
/** What may be told while a model goes on speaking. */
const MEANWHILE: readonly StreamEvent['type'][] = [
  'delta',
  'message-said',
  'run-paused',
  'run-resumed',
];

interface Said {
  readonly text: string;
  readonly thought: string;
  /** The call that is being written. */
  readonly call: { readonly index: number; readonly name: string; readonly text: string } | null;
}

const NOTHING: Said = { text: '', thought: '', call: null };

export function createLiveText(paint: Palette): LiveText {
  let said = NOTHING;
  return {
    hear(event) {
      const before = said;
      if (event.type === 'delta') said = heard(said, event);
      // What follows a gap comes from a later place.
      else if (event.type === 'gap') said = { ...said, text: `${said.text} … ` };
      else if (!MEANWHILE.includes(event.type)) said = NOTHING;
      return said !== before;
    },
    lines(columns) {
      const { text, thought, call } = said;
      const width = Math.max(columns - MARK.length - 1, 10);
      const spoken =
        text === ''
          ? lastLines(thought, width, THOUGHT_LINES).map((line) => paint.dim(line))
          : lastLines(text, width, TEXT_LINES);
      const asked = call === null ? [] : [paint.cyan(callLine(call, width))];
      return [...spoken, ...asked].map((line) => `${paint.dim(MARK)}${line}`);
    },
  };
}

function heard(said: Said, { kind, text, index = 0, name = '' }: DeltaEvent): Said {
  switch (kind) {
    case 'text':
      return { ...said, text: newest(said.text + text) };
    case 'reasoning':
      return { ...said, thought: newest(said.thought + text) };
    case 'call': {
      const same = said.call?.index === index ? said.call : { index, name: '', text: '' };
      const call = { index, name: newest(same.name + name), text: newest(same.text + text) };
      return { ...said, call };
    }
  }
}

function newest(text: string): string {
  return text.length > 2 * KEPT_UNITS ? text.slice(-KEPT_UNITS) : text;
}

function callLine({ name, text }: { name: string; text: string }, width: number): string {
  const whole = `${name} ${text}`;
  // Of long arguments the end is what is being written.
  return visible(whole.length <= width ? whole : `${name} … ${text.slice(-Math.floor(width / 2))}`);
}

/** Control characters are made harmless first: nothing of what is said may end up cut in the middle of one. */
function lastLines(text: string, width: number, count: number): readonly string[] {
  if (text === '') return [];
  return printable(text)
    .replaceAll('\t', '  ')
    .trimEnd()
    .split('\n')
    .slice(-count)
    .flatMap((line) => wrapped(line, width))
    .slice(-count);
}

function wrapped(line: string, width: number): readonly string[] {
  // By characters: half of one is none.
  const characters = Array.from(line);
  const rows = Math.max(1, Math.ceil(characters.length / width));
  return Array.from({ length: rows }, (_, row) =>
    characters.slice(row * width, (row + 1) * width).join(''),
  );
}
