import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { EXIT } from '../src/cli/context.js';
import type { StreamEvent } from '../src/client.js';

const ROOT = new URL('../', import.meta.url).pathname;

/** The texts of all files below a folder with one of these endings. */
function textsBelow(folder: string, endings: RegExp): readonly string[] {
  return readdirSync(join(ROOT, folder), { recursive: true })
    .map(String)
    .filter((name) => endings.test(name))
    .map((name) => readFileSync(join(ROOT, folder, name), 'utf8'));
}

const pages = [
  ...textsBelow('docs', /\.md$/),
  ...['README.md', 'SECURITY.md', 'CONTRIBUTING.md'].map((name) =>
    readFileSync(join(ROOT, name), 'utf8'),
  ),
].join('\n');
const source = textsBelow('src', /\.ts$/).join('\n');

/** What processes of perdure set for each other, and symbols of code. */
const INTERNAL = new Set([
  'PERDURE_ASK',
  'PERDURE_CANCEL_TURN',
  'PERDURE_DEV_ANY_PORT',
  'PERDURE_LIVE_UNREACHABLE',
  'PERDURE_REPORTS_FILES',
  'PERDURE_SERVER_OWNER_PID',
]);

test('a page names every environment variable that the product reads', () => {
  const names = new Set(
    [...source.matchAll(/['"`.[]((?:PERDURE|TEMPORAL)_[A-Z_]*[A-Z])\b/g)].map(
      ([, name = '']) => name,
    ),
  );
  expect(names.size).toBeGreaterThan(8);
  expect([...names].filter((name) => !INTERNAL.has(name) && !pages.includes(name))).toEqual([]);
});

test('docs/command.md names every exit code', () => {
  const text = readFileSync(join(ROOT, 'docs/command.md'), 'utf8');
  const [, section = ''] = text.split(/^## Exit codes.*$/m);
  const [table = ''] = section.split(/^## /m);
  const missing = Object.values(EXIT).filter((code) => !new RegExp(`\\b${code}\\b`).test(table));
  expect(missing).toEqual([]);
});

test('a page names every export of every entry point', () => {
  const entries: Readonly<Record<string, readonly string[]>> = JSON.parse(
    readFileSync(join(ROOT, 'test/package/entry-names.json'), 'utf8'),
  );
  const names = new Set(Object.values(entries).flat());
  expect([...names].filter((name) => !new RegExp(`\\b${name}\\b`).test(pages))).toEqual([]);
});

test('every workflows file that is shown exports `probe`, by which commands see a worker', () => {
  const shown = [
    ...`${pages}\n${source}`.matchAll(/export \{ (agent\b[^}]*)\} from 'perdure\/workflow'/g),
  ];
  expect(shown.length).toBeGreaterThan(8);
  expect(shown.map(([text]) => text).filter((text) => !text.includes('probe'))).toEqual([]);
});

/** Types of the reference whose fields a caller or an author gives, by the ends of their names or as a whole. */
const INPUT =
  /^(?:\w*(?:Options|Settings|Facts|Bounds|Delivery|Filter|Gates|Input)|ActorClaim|AgentTexts|ArtifactsField|Ask|CalledAgent|ClientTool|Config|Decision|MessageRange|ModelPrice|ModelRate|NodeVisit|Reactions|RequestedGrant|Rule|ScheduleNote|ScheduleTimes|TranscriptRange)\n/;

/** What says what holds if an option is omitted. */
const DEFAULT = /\bdefaults?\b|\babsent: |\bwithout (?:it|this \w+), |\bRequired\b/i;

test('the reference describes every option that may be omitted, with its default', () => {
  const inputs = textsBelow('docs/reference', /\.md$/).flatMap((page) =>
    page.split(/^### /m).filter((section) => INPUT.test(section)),
  );
  const options = inputs.flatMap((section) => {
    const [name = ''] = section.split('\n');
    return [...section.matchAll(/^- `(\w+\?): [^`]*`(.*)$/gm)].map(([, field, text = '']) => ({
      option: `${name}.${field}`,
      text,
    }));
  });
  expect(inputs.length).toBeGreaterThan(60);
  expect(options.length).toBeGreaterThan(300);
  const silent = options.filter(({ text }) => !DEFAULT.test(text)).map(({ option }) => option);
  expect([...new Set(silent)]).toEqual([]);
});

type FieldsOf<Event> = Event extends unknown ? Exclude<keyof Event, 'type'> : never;
type EventFields = {
  readonly [Type in StreamEvent['type']]?: readonly FieldsOf<
    Extract<StreamEvent, { readonly type: Type }>
  >[];
};

/** Compiled: an event or a field that does not exist is an error. */
const EVENT_FIELDS: EventFields = {
  'run-started': ['agent', 'open'],
  'message-added': ['message'],
  'model-replied': ['message', 'usage'],
  'call-begun': ['turn', 'call'],
  'call-finished': ['tool', 'message'],
  'request-raised': ['request', 'kind', 'call', 'why'],
  'request-closed': ['request', 'as', 'by', 'door'],
  'work-blocked': ['on', 'reason', 'message'],
  'wait-begun': ['for', 'until'],
  'turn-ended': ['turn', 'outcome'],
  'run-ended': ['reason', 'outcome'],
  delta: ['turn', 'step', 'attempt', 'kind', 'text', 'offset'],
};

test('docs/client.md has the fields of events as the types have them', () => {
  const text = readFileSync(join(ROOT, 'docs/client.md'), 'utf8');
  const [, table = ''] = /^\| event +\| fields .*\n\|.*\n((?:\|.*\n)+)/m.exec(text) ?? [];
  const rows = table
    .trim()
    .split('\n')
    .map((row) => {
      const [, event = '', fields = ''] = row.split('|');
      const named = fields.replaceAll(/\([^)]*\)/g, '').matchAll(/`([^`]+)`/g);
      return [event.trim().replaceAll('`', ''), [...named].map(([, name]) => name)];
    });
  expect(Object.fromEntries(rows)).toEqual(EVENT_FIELDS);
});
