import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { isOpenStatus, RUN_STATUSES, type RunPhase } from '../../src/core/state/status.js';
import { createProgram } from '../../src/cli/program.js';
import {
  commandLine,
  decidingCommands,
  fixFor,
  runCommands,
  type RunFacts,
} from '../../src/core/requests/commands.js';
import { wordsOf } from '../../src/cli/requests/prompt.js';
import { runnableText } from '../../src/cli/reports/next-command.js';
import { LIMIT_NAMES } from '../../src/core/definition/definition.js';
import { checkLimits } from '../../src/core/input/limits.js';
import { OFFERED, type Request, type RequestKind } from '../../src/core/transcript/request.js';
import { approval } from './samples.js';

const NOW = 1_300_000;
/** What a person types for a word in capitals. */
const TYPED: Readonly<Record<string, string>> = {
  TEXT: 'x',
  MESSAGE: 'x',
  JSON: '{"a":1}',
  N: '3',
  NAME: 'ann',
};

interface Parsed {
  readonly command: string;
  readonly options: Readonly<Record<string, unknown>>;
}

/** Parses words with the program that people run. Throws as it does for a command that it refuses. */
async function parse(words: readonly string[]): Promise<Parsed> {
  let parsed: Parsed | null = null;
  const program = createProgram((_, entry, options) => {
    parsed = { command: entry.name(), options: { ...options } };
    return Promise.resolve();
  });
  program.configureOutput({ writeErr: () => undefined });
  await program.parseAsync(
    words.map((word) => TYPED[word] ?? word.replace(/=N$/, '=3')),
    { from: 'user' },
  );
  if (parsed === null) throw new Error(`nothing runs: ${words.join(' ')}`);
  return parsed;
}

/** Splits a line as a shell does; the lines here have no escapes. */
function shellWords(line: string): readonly string[] {
  return (line.match(/'[^']*'|\S+/g) ?? []).map((word) => word.replaceAll("'", ''));
}

const actions = (asks: readonly boolean[]): string =>
  JSON.stringify({
    actions: asks.map((one, at) => ({
      id: `a${at + 1}`,
      tool: 't',
      arguments: {},
      ...(one && { asks: { then: 'ask', why: 'rule' } }),
    })),
  });

/** Requests of every kind, in every form that changes a command. */
const requests: readonly (readonly [string, Request])[] = (
  Object.keys(OFFERED) as RequestKind[]
).flatMap((kind): [string, Request][] => {
  const request = approval({ kind, decisions: OFFERED[kind] });
  if (kind === 'limit') {
    return LIMIT_NAMES.map((name) => [
      `limit ${name}`,
      { ...request, limit: { name, used: 9, limit: 9 } },
    ]);
  }
  if (kind === 'plan') {
    return [[true, true], [false, true], [false]].map((asks) => [
      `plan ${asks.join(' ')}`,
      { ...request, arguments: actions(asks) },
    ]);
  }
  if (kind === 'tool_changed') return [[kind, { ...request, definition: 'd'.repeat(64) }]];
  return [[kind, request]];
});

describe('a printed command', () => {
  test.each(requests)('that decides is one that the program takes: %s', async (_, request) => {
    const commands = decidingCommands('desk 1', request, NOW);
    const isOne = request.arguments === actions([false]);
    expect(commands).toHaveLength(request.decisions.length - (isOne ? 1 : 0));
    for (const { words } of commands) {
      const { options } = await parse(words);
      expect(options).toMatchObject({ id: 'desk 1' });
      // The line that is printed says the same to a shell.
      expect(await parse(shellWords(commandLine('perdure', words)).slice(1))).toEqual(
        await parse(words),
      );
    }
    const fix = shellWords(fixFor('desk 1', request, request.decisions));
    expect((await parse(fix.slice(1))).options).toMatchObject({ id: 'desk 1' });
    // Whoever may not decide adds the name of a person who may.
    for (const { words } of decidingCommands('desk 1', request, NOW, 'other')) {
      expect((await parse(words)).options).toMatchObject({ id: 'desk 1', by: 'ann' });
    }
    expect(decidingCommands('desk 1', request, NOW, 'none')).toEqual([]);
    expect(fixFor('desk 1', request, request.decisions, 'none')).toBe("perdure inbox 'desk 1' r1");
  });

  test.each(LIMIT_NAMES)('raises the limit that was reached, by its own name: %s', async (name) => {
    const request = approval({
      kind: 'limit',
      decisions: OFFERED.limit,
      limit: { name, used: 9, limit: 9 },
    });
    const [raise] = decidingCommands('desk-1', request, NOW);
    const { command, options } = await parse(raise?.words ?? []);
    expect(command).toBe('limits');
    expect(options['add']).toEqual({ [name]: name === 'wallMs' ? 600_000 : 3 });
    expect(checkLimits(options['add'], 'arguments')).toBeNull();
  });

  test.each<[string, Partial<Request>, string]>([
    ['a call of a model', { kind: 'approval' }, 'refuse it; the note is for the model'],
    [
      'a call of a graph',
      { kind: 'approval', call: 'node_pay_1_0' },
      'refuse it; the note is for the graph, as the error of the call',
    ],
    [
      'a confirm of a graph',
      { kind: 'question', call: 'node_sure_1_0', tool: 'node:sure' },
      'answer no; the note becomes a message of the run',
    ],
    ['a plan', { kind: 'plan' }, 'no: execute nothing; the note becomes a message of the run'],
    [
      'an undo',
      { kind: 'approval', decisions: ['approve', 'deny'] },
      'do not undo it; the note is recorded',
    ],
  ])('that denies says who reads the note: %s', (_, given, purpose) => {
    const request = approval({ decisions: OFFERED[given.kind ?? 'approval'], ...given });
    const commands = decidingCommands('desk-1', request, NOW);
    expect(commands.find(({ words }) => words[0] === 'deny')?.purpose).toBe(purpose);
  });

  test('about a part of a plan names actions unless the plan has such a part', () => {
    const named: string[] = [];
    const some = (asks: readonly boolean[]): readonly string[] => {
      const request = approval({
        kind: 'plan',
        decisions: OFFERED.plan,
        arguments: actions(asks),
      });
      const [, found] = decidingCommands('desk-1', request, NOW);
      named.push(...(found?.purpose.match(/\ba\d+\b/g) ?? []));
      return found?.words.slice(5) ?? [];
    };
    expect(some([false, true])).toEqual(['--some']);
    expect(some([true, true])).toEqual(['--some', 'a1']);
    expect(some([false, false])).toEqual(['--some', 'a1']);
    // Each of them exists.
    expect(named).not.toContain('a3');
    expect(some([true, true, true])).toEqual(['--some', 'a1']);
    expect(named).toContain('a3');
  });

  test('about a part of a plan has an example that is accepted', () => {
    const planned = JSON.parse(actions([false, true, false])) as { actions: object[] };
    const chain = planned.actions.map((one, at) => (at === 2 ? { ...one, after: ['a2'] } : one));
    const request = approval({
      kind: 'plan',
      decisions: OFFERED.plan,
      arguments: JSON.stringify({ actions: chain }),
    });
    const [, found] = decidingCommands('desk-1', request, NOW);
    expect(found?.purpose).toBe(
      'some: execute only what needs no approval; with ids, as --some a1,a2, only those',
    );
  });

  test('about a part of a plan is not there for one action', () => {
    const request = approval({ kind: 'plan', decisions: OFFERED.plan, arguments: actions([true]) });
    const commands = decidingCommands('desk-1', request, NOW).map(({ words: [name] }) => name);
    expect(commands).toEqual(['approve', 'deny', 'answer']);
    expect(wordsOf(request).join(' ')).not.toContain('some');
  });

  test('is not there while a decision is checked, and after the request has expired', () => {
    expect(decidingCommands('desk-1', approval({ checking: true }), NOW)).toEqual([]);
    expect(decidingCommands('desk-1', approval({ expiresAt: NOW }), NOW)).toEqual([]);
    expect(decidingCommands('desk-1', approval({ expiresAt: NOW + 1 }), NOW)).toHaveLength(4);
  });

  const statuses = [...Object.keys(RUN_STATUSES).filter(isOpenStatus), 'done'] as RunPhase[];
  const grants = [{ id: 'g1', shown: 'x', at: 1, request: 'r1', tool: 'put' }] as never;
  const undoable = (state?: 'undone', until = NOW + 1): NonNullable<RunFacts['undoable']> => [
    { call: 'call_1_1_0', tool: 'put', shown: 'x', until, ...(state && { state }) },
  ];
  const flags = [true, false];

  test.each(statuses)('about a run is one that the program takes: %s', async (status) => {
    for (const isBlocked of flags)
      for (const isPaused of flags)
        for (const isIdle of flags)
          for (const hasWorker of flags) {
            const facts = { id: 'r', status, isBlocked, isPaused, isIdle, hasWorker };
            const all = { ...facts, grants, undoable: undoable() };
            const shown = runCommands(all, NOW).map(({ words }) => words);
            const parsed = await Promise.all(shown.map(parse));
            const names = parsed.map(({ command }) => command);
            expect(new Set(names).size).toBe(names.length);
            if (!isOpenStatus(status)) expect(names).toEqual(['transcript']);
            else expect(names.includes('undo')).toBe(hasWorker || isIdle);
            expect(names.includes('resume')).toBe(isOpenStatus(status) && (isBlocked || isPaused));
          }
  });

  test('does not offer the transcript of a run without messages', () => {
    const facts = { id: 'r', isBlocked: false, isPaused: false, isIdle: false, hasWorker: true };
    const ended = { ...facts, status: 'done', hasMessages: false } as const;
    expect(runCommands(ended, NOW)).toEqual([]);
  });

  test('does not offer an undo that is made, or whose time is over', () => {
    const facts = {
      id: 'r',
      status: 'working',
      isBlocked: false,
      isPaused: false,
      isIdle: false,
      hasWorker: true,
    } as const;
    const names = (calls: NonNullable<RunFacts['undoable']>): readonly (string | undefined)[] =>
      runCommands({ ...facts, undoable: calls }, NOW).map(({ words }) => words[0]);
    expect(names(undoable())).toContain('undo');
    expect(names(undoable('undone'))).not.toContain('undo');
    expect(names(undoable(undefined, NOW))).not.toContain('undo');
  });

  test('offers an undo without a worker only if the command hosts one', () => {
    const facts = {
      id: 'r',
      status: 'waiting_message',
      isBlocked: false,
      isPaused: false,
    } as const;
    const names = (place: Pick<RunFacts, 'isIdle' | 'canHost'>): readonly (string | undefined)[] =>
      runCommands({ ...facts, ...place, hasWorker: false, undoable: undoable() }, NOW).map(
        ({ words }) => words[0],
      );
    expect(names({ isIdle: true, canHost: true })).toContain('undo');
    expect(names({ isIdle: true, canHost: false })).not.toContain('undo');
    expect(names({ isIdle: false, canHost: true })).not.toContain('undo');
  });
});

/** The text of a file of `src` without comments, and its place. */
function sources(): readonly (readonly [string, string])[] {
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' });
  return files.flatMap((file) => {
    if (!file.endsWith('.ts')) return [];
    const lines = readFileSync(join('src', file), 'utf8').split('\n');
    return [[file, lines.filter((line) => !/^\s*(\/\/|\*|\/\*)/.test(line)).join('\n')] as const];
  });
}

/** Replaces what a template inserts by a word. */
const filled = (text: string): string => text.replaceAll(/\$\{[^{}]*\}/g, 'x');

const NAMES = new Set(createProgram(() => Promise.resolve()).commands.map((one) => one.name()));

/** Splits `schedule list`, which is typed as two words. */
const spread = (words: readonly string[]): readonly string[] =>
  words.flatMap((word, at) => (at === 0 ? word.split(' ') : [word]));

/** The commands in the strings of the product, each with its place. A command alone is only named. */
const named = sources().flatMap(([file, text]) =>
  [
    ...filled(text).matchAll(
      /\bperdure ([a-z-]+(?: (?:accept|create|update|list))?)((?: (?:--[a-z-]+|[A-Z]+|x)(?![\w]))*)/g,
    ),
  ].flatMap(([, command = '', rest = '']) =>
    NAMES.has(command.split(' ')[0] ?? '')
      ? [[file, [...command.split(' '), ...rest.split(' ').filter((word) => word !== '')]] as const]
      : [],
  ),
);

/** The words that functions for hints receive, each with its place. */
const hints = sources().flatMap(([file, text]) =>
  [...text.matchAll(/nextCommand(?:Of|For|About)\([^[\]]*?\[([^[\]]*)\]/g)].map(
    ([, list = '']) =>
      [
        file,
        spread(
          list
            .split(',')
            .map((word) => word.trim())
            .filter((word) => word !== '' && !word.startsWith('...'))
            .map((word) => /^'(.*)'$/.exec(word)?.[1] ?? 'x'),
        ),
      ] as const,
  ),
);

describe('a command in a message', () => {
  test.each(named)('is one that the program takes: %s: %j', async (_, words) => {
    const ends = ['accept', 'create', 'update', 'list'];
    const isName = words.length === 1 || (words.length === 2 && ends.includes(words[1] ?? ''));
    if (!isName) return expect((await parse(words)).command).toBe(words[0]);
    // The name alone may stand for a command with operands.
    const [first, second] = words;
    const entry = createProgram(() => Promise.resolve()).commands.find(
      (one) => one.name() === first,
    );
    expect(second === undefined || entry?.commands.some((one) => one.name() === second)).toBe(true);
  });

  test.each(hints)('that a hint gives is one that the program takes: %s: %j', async (_, words) => {
    // A function that passes its words on gives none itself.
    if (words.length === 0 || words[0] === 'x') return;
    await expect(parse(words)).resolves.toBeDefined();
  });

  test('names this program where it is printed: the list of named commands is complete', () => {
    const texts = named.map(([, words]) => `perdure ${words.join(' ')}`);
    const kept = texts.filter((text) => runnableText({ options: {}, env: {} }, text) === text);
    expect([...new Set(kept)]).toEqual([]);
  });

  test('is found in the sources', () => {
    expect(named.length).toBeGreaterThan(10);
    expect(hints.length).toBeGreaterThan(30);
  });
});
