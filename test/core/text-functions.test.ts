import { Script } from 'node:vm';
import { expect, test } from 'vitest';
import { palette, oneLine, pieces, wrapped } from '../../src/cli/format/format.js';
import { argumentLines } from '../../src/cli/requests/request-lines.js';
import { collectArguments, parseJsonOption } from '../../src/cli/input/option-parsers.js';
import { followUp } from '../../src/cli/requests/prompt.js';
import { createLiveText } from '../../src/cli/run-view/live-text.js';
import { failureOf } from '../../src/core/transcript/call-result.js';
import { errorIn } from '../../src/core/text/json.js';
import { documentText, parseDocumentKey } from '../../src/core/rules/documents.js';
import { readPlanAnswer, readYesOrNo } from '../../src/core/plan/confirm-plan.js';
import { mayAnswer } from '../../src/core/requests/answer-by-message.js';
import { cutValue } from '../../src/core/plan/results.js';
import { matchesGlob } from '../../src/core/definition/predicate.js';
import { beginOf, fillText, parsePlaceholders } from '../../src/core/definition/definition.js';
import {
  parseDuration,
  problemText,
  countHidden,
  escapeJson,
  printable,
  withoutHidden,
  withoutTail,
} from '../../src/core/text/text.js';
import { escapeMarkdown, eventSummary, inertMarkdown } from '../../src/core/run/details.js';
import { repairText } from '../../src/core/run/on-reply.js';
import {
  callSummary,
  listInLine,
  visible,
  visibleMessage,
} from '../../src/core/state/summaries.js';
import { hasHidden, stripHidden } from '../../src/mcp/listed-tool.js';
import { parseCallsInContent } from '../../src/models/calls-in-markup.js';
import { nextMove } from '../../src/models/demo/model.js';
import { readError, saysContextTooLong } from '../../src/models/wire/read-error.js';
import { sample } from '../../src/models/model.js';
import { findClass, normalizeLabel, parseClass } from '../../src/output/classes/classes.js';
import { extractJson, findFences } from '../../src/output/extract-json.js';
import { parseTags, tags } from '../../src/output/parse-tags.js';
import { renderTemplate, template } from '../../src/prompts/template.js';
import { fieldsOf } from '../../src/secrets/forms.js';
import { compileMatcher } from '../../src/secrets/matcher.js';
import { learnSecrets } from '../../src/secrets/known.js';
import {
  redactJson,
  redactJsonText,
  redact,
  redactMessage,
  createStreamRedactor,
} from '../../src/secrets/redact.js';
import { parseArguments } from '../../src/tools/arguments/arguments.js';
import { globMatcher } from '../../src/tools/files/names.js';
import { plainName } from '../../src/tools/files/open-file.js';
import { cutText } from '../../src/tools/result/normalize.js';
import { normalizeError, headBytes, tailBytes } from '../../src/tools/result/plain.js';
import { endsInTime } from '../support/ends-in-time.js';

/** A loop in a loop needs several seconds for it, and a linear one some milliseconds. */
const LENGTH = 64 * 1024;
/** What has stopped parsers: blanks, brackets, quotes, escapes, marks, and mixtures of them. */
const UNITS = [
  ' ',
  '\t',
  '\n',
  '\r\n',
  '\u00a0',
  '(',
  '[',
  '{',
  '<',
  '>',
  '}',
  ']',
  '[{',
  '{"a":',
  '{}',
  '[]',
  '"',
  "'",
  '`',
  '```\n',
  '~',
  '\\',
  '\\"',
  '"\\"',
  '\\"\n',
  '"\n',
  '{"',
  '{{',
  '{{a',
  '{{a}}',
  '\\\\"',
  '.',
  ',',
  ' ,',
  ', ',
  '-',
  '_',
  '*',
  '#',
  '|',
  '/',
  '//',
  '://',
  '://a',
  'a@',
  ':',
  ';',
  '=',
  'a=',
  '%',
  '0',
  '9e',
  '-1',
  'a',
  'a ',
  'and ',
  'yes ',
  'a1 ',
  'edit',
  '< ',
  '</',
  '<a ',
  '<a b=',
  '<a b="',
  '</a>',
  '< /',
  '<document',
  'Bearer ',
  'Basic a',
  'sk-',
  'ghp_aa',
  'eyJ',
  '\u200d',
  '\u{1f600}',
  '\u{1f600}\u200d',
  '\ud83d',
  '\ude00',
  'A\u0301',
  '\u001b[',
  '\u001b[1m',
  '&#1',
  '&',
  '\\u',
  '\\u00',
  'data: ',
  'model ',
  'context length ',
  'schema ',
  'bcZ9-long-key',
  'MIIE',
  'c2stbGl2',
  '73 6b ',
  '115,107,',
  '&#115;',
];
const TEXTS = UNITS.map((unit) => unit.repeat(Math.ceil(LENGTH / unit.length)));
/** Foreign text is often short of one thing: these begin or end with something else. */
const FRAMED = [' ', '\\', '"', '[', '{', '<', '```'].flatMap((unit) => {
  const text = unit.repeat(Math.ceil(LENGTH / unit.length));
  return [`x${text}x`, `"${text}`, `edit ${text}x`, `some${text}a1`, `{"a":"${text}`, `<a ${text}`];
});

const declared = tags({ xml: ['a'], fences: ['a'], signals: ['DONE'] });
const filled = template('x {{a}}', { args: ['a'] });
const tools = [{ name: 'a', description: '', parameters: { type: 'object' } }];
const plan = [{ id: 'a1', tool: 'a', arguments: {} }];
const classes = ['a refund', 'a return'];
const demoTools = [
  { ...tools[0]!, name: 'list_files' },
  { ...tools[0]!, name: 'read_file' },
];

const FUNCTIONS: Readonly<Record<string, (text: string) => unknown>> = {
  readPlanAnswer: (text) => readPlanAnswer(text, plan),
  readYesOrNo,
  mayAnswer,
  documentText: (text) => documentText('0'.repeat(32), { shown: text, id: text, source: text }),
  parseDocumentKey,
  normalizeLabel,
  findClass: (text) => findClass(text, classes),
  parseClass: (text) => parseClass(classes, text),
  extractJson,
  findFences,
  parseTags: (text) => parseTags(declared, text),
  parseCallsInContent: (text) => parseCallsInContent(text, tools),
  parseArguments,
  redact,
  redactMessage,
  redactJson,
  redactJsonText,
  fieldsOf,
  redactStream: (text) => {
    const redactor = createStreamRedactor();
    for (let at = 0; at < text.length; at += 64) redactor.push(text.slice(at, at + 64));
    return redactor.end();
  },
  printable,
  withoutHidden,
  countHidden,
  escapeJson,
  hasHidden,
  stripHidden,
  escapeMarkdown,
  inertMarkdown,
  eventSummary,
  visible,
  visibleMessage,
  listInLine,
  failureOf: (text) =>
    failureOf({ ok: false, text: `[note]\n{"error":{"type":"a","message":"${text}` }),
  callSummary: (text) => callSummary({ id: 'c', name: text, arguments: text } as never),
  problemText,
  repairText: (problem) => repairText(problem, { attempt: 1, attempts: 2 }),
  cutValue: (text) => cutValue(text, 100),
  cutText: (text) => cutText(text, {}),
  headBytes: (text) => headBytes(text, 1_000),
  tailBytes: (text) => tailBytes(text, 1_000),
  withoutTail: (text) => withoutTail(text, /[\s"[{(\\]/u),
  errorIn,
  parsePlaceholders: quietly(parsePlaceholders),
  fillText: quietly((text) => fillText(text, { a: text })),
  beginOf: quietly(beginOf),
  template: quietly((text) => template(text)),
  renderTemplate: (text) => renderTemplate(filled, { a: text }),
  parseDuration,
  matchesGlob: (text) => matchesGlob(text, '*a*a*b'),
  globMatcher: quietly((text) => globMatcher(text)('a/b')),
  globMatcherOfPath: (text) => globMatcher('**/*a*b')(text.slice(0, 4_096)),
  plainName,
  normalizeError: (text) => normalizeError(new Error(text)),
  sample,
  readError: (text) => readError({ status: 400, headers: new Headers(), error: text }),
  saysContextTooLong,
  nextMove: (question) => nextMove({ question, calls: [] }, { tools: demoTools, mayCall: true }),
  listing: (text) =>
    nextMove(
      { question: 'x', calls: [{ tool: 'list_files', ok: true, text: `${text}\n${text}` }] },
      { tools: demoTools, mayCall: true },
    ),
  oneLine,
  pieces: (text) => pieces(text, 80),
  wrapped: (text) => wrapped(text, 80),
  argumentLines: (text) => argumentLines(text, { full: true, width: 80 }),
  argumentLinesOfValue: (text) =>
    argumentLines(JSON.stringify({ a: text }), { full: false, width: 80 }),
  liveText: (text) => {
    const live = createLiveText(palette(false));
    live.add({ type: 'delta', kind: 'text', text } as never);
    live.add({ type: 'delta', kind: 'call', index: 0, name: text, text } as never);
    return live.lines(80);
  },
  collectArguments: quietly((text) => collectArguments(text)),
  parseJsonOption: quietly(parseJsonOption),
  editLine: (text) => followUp('edit', { kind: 'approval' } as never)?.read(text),
};

const TERMINAL = ['pieces', 'wrapped', 'argumentLines', 'argumentLinesOfValue'];

/** Refusing a text is an answer, too. */
function quietly(read: (text: string) => unknown): (text: string) => unknown {
  return (text) => {
    try {
      return read(text);
    } catch (error) {
      // V8 ends a script that is out of time with an error that is not one of this realm.
      if (!(error instanceof Error)) throw error;
      return error.message;
    }
  };
}

/** Returns whether a function ends on a text within the time that only a loop in a loop needs. */
const ends = (read: (text: string) => unknown, text: string): boolean =>
  endsInTime(new Script('read(text)'), { read, text });

test.each(Object.entries(FUNCTIONS))('%s passes over 64 KiB of anything', (name, read) => {
  learnSecrets({ values: ['sk-live-bcZ9-long-key-0123456789abcdef', 'MIIEowIBAAKCAQEA7'] });
  // The first is enough: each costs the whole time.
  // Measuring graphemes is linear, but slow; a part of the texts suffices.
  const texts = [...TEXTS, ...FRAMED].filter((_, at) => !TERMINAL.includes(name) || at % 8 === 1);
  const slow = texts.find((text) => !ends(read, text));
  expect(slow?.slice(0, 20)).toBeUndefined();
});

test('a text of zeros is not compared with every secret that has wide forms', () => {
  const secrets = Array.from({ length: 300 }, (_, at) => ({
    name: `KEY_${at}`,
    value: `sk-live-${Buffer.from(`secret ${at} of many`).toString('base64url')}`,
  }));
  const matcher = compileMatcher(secrets);
  const zeros = ['0', '0,', '0x00, ', '%00'].map((unit) => unit.repeat(2 ** 20 / unit.length));
  const slow = zeros.find((text) => !ends((read) => matcher.find(read), text));
  expect(slow?.slice(0, 20)).toBeUndefined();
});
