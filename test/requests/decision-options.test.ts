import { describe, expect, test } from 'vitest';
import { resultOf, parseGrant, noteOf } from '../../src/cli/commands/approve.js';
import { sumOf } from '../../src/cli/commands/limits.js';
import { UsageError } from '../../src/cli/context.js';
import { deciderName, osUser } from '../../src/cli/input/option-parsers.js';
import { checkDigest, requestNamed } from '../../src/cli/requests/decide.js';
import {
  completed,
  followUp,
  inOfferedWords,
  readChoice,
  readNamed,
  readPlain,
  spelledOut,
  promptWords,
  wordsOf,
} from '../../src/cli/requests/prompt.js';
import { approval, DIGEST } from './samples.js';

/** The request about a plan of these actions. */
const planOf = (actions: readonly object[]) =>
  approval({ kind: 'plan', arguments: JSON.stringify({ actions }) });

describe('the digest that a person has seen', () => {
  const request = approval();

  test.each([12, 13, 40, 64])('is accepted with its first %i digits', (digits) => {
    expect(() => checkDigest(DIGEST.slice(0, digits), request, 'desk 1')).not.toThrow();
    expect(() =>
      checkDigest(DIGEST.slice(0, digits).toUpperCase(), request, 'desk 1'),
    ).not.toThrow();
  });

  test.each(['', 'ab12cd34ef5', 'ab12cd34ef5g', ' ab12cd34ef56', `${DIGEST}0`, '*'.repeat(12)])(
    'is refused as %j',
    (given) => {
      expect(() => checkDigest(given, request, 'desk 1')).toThrow(UsageError);
    },
  );

  test('is refused if it belongs to another request', () => {
    expect(() => checkDigest('ab12cd34ef57', request, 'desk 1')).toThrow(
      '--digest: expected that of request r1 as it is now, got ab12cd34ef57; it may have changed; ' +
        "before you decide, read it again: perdure inbox 'desk 1' r1",
    );
    expect(() => checkDigest(DIGEST.replace(/0$/, '1'), request, 'desk 1')).toThrow(
      'may have changed',
    );
  });
});

describe('the options of decisions', () => {
  test('a grant has a scope, and a predicate only for a tool', () => {
    const where = { op: 'under', path: 'euros', value: 50 };
    expect(parseGrant({})).toBeNull();
    expect(parseGrant({ grant: 'same_call' })).toEqual({ scope: 'same_call' });
    expect(parseGrant({ grant: 'tool' })).toEqual({ scope: 'tool' });
    expect(parseGrant({ grant: 'tool', where })).toEqual({ scope: 'tool', where });
    expect(() => parseGrant({ where })).toThrow('--where: expected --grant tool');
    expect(() => parseGrant({ grant: 'same_call', where })).toThrow(
      '--where: expected --grant tool',
    );
    expect(() =>
      parseGrant({ grant: 'tool', where: { op: 'over', path: 'a', value: 'x' } }),
    ).toThrow('--where.value: expected a number');
    expect(() => parseGrant({ grant: 'tool', where: 7 })).toThrow('--where: expected a predicate');
  });

  test('an answer is text or JSON, and never both', () => {
    expect(resultOf(['to', 'Rome'], undefined)).toBe('to Rome');
    expect(resultOf([], null)).toBeNull();
    expect(() => resultOf([], undefined)).toThrow('text: expected an answer, got none');
    expect(() => resultOf(['  '], undefined)).toThrow('text: expected an answer, got none');
    expect(() => resultOf(['a'], 1)).toThrow('--result: expected either TEXT or --result JSON');
  });

  test('an amount is added to a limit that is set', () => {
    const before = { steps: 10, costUsd: 0.5, tokens: null };
    expect(sumOf({ steps: 5, costUsd: 0.25 }, before)).toEqual({ steps: 15, costUsd: 0.75 });
    for (const none of ['tokens', 'depth']) {
      expect(() => sumOf({ [none]: 1 }, before, 'run.')).toThrow(
        `--add: expected a limit that is set, got run.${none}, which is none; use --limit run.${none}=N`,
      );
    }
  });

  test('a note has at most 2,000 characters', () => {
    expect(noteOf('n'.repeat(2_000)).note).toHaveLength(2_000);
    expect(() => noteOf('n'.repeat(2_001))).toThrow('--note: expected at most 2000');
  });

  test('the decider is the OS user, marked as unverified, unless --by names a person', () => {
    expect(osUser()).toMatch(/^unverified:os-user:.+/);
    expect(deciderName(undefined)).toBe(osUser());
    expect(deciderName('ann')).toBe('ann');
    for (const by of ['', ' ', 'x'.repeat(201)]) expect(() => deciderName(by)).toThrow('--by: ');
  });

  test('a request is named by its id, or by the id of its call', () => {
    const other = approval({ id: 'call_1_1_0', call: 'call_9_9_9' });
    expect(requestNamed([approval(), other], 'r1')?.id).toBe('r1');
    expect(requestNamed([approval()], 'call_1_1_0')?.id).toBe('r1');
    // An id takes precedence over a call.
    expect(requestNamed([approval(), other], 'call_1_1_0')?.call).toBe('call_9_9_9');
    expect(requestNamed([approval()], 'r2')).toBeUndefined();
  });
});

describe('the prompt', () => {
  const request = approval();

  test.each([
    ['approve', 'approve'],
    [' APPROVE ', 'approve'],
    ['app', 'approve'],
    ['later', 'later'],
    ['full', 'full'],
    ['a', null],
    ['d', null],
    ['', null],
    ['yes', null],
    ['raise', null],
  ])('reads %j as %j', (line, choice) => {
    expect(readChoice(line, request)).toBe(choice);
  });

  test('takes a letter for yes or no, unless another offered word begins with it', () => {
    for (const letter of ['y', ' Y ']) expect(spelledOut(letter, request)).toBe('yes');
    expect(spelledOut('n', request)).toBe('no');
    const plan = approval({ kind: 'plan', decisions: ['approve', 'some', 'deny', 'answer'] });
    expect(spelledOut('y', plan)).toBe('yes');
    // It could be `nothing` as well.
    expect(spelledOut('n', plan)).toBe('n');
    const decisions = ['answer', 'deny'] as const;
    const sure = approval({ kind: 'question', decisions, tool: 'node:sure' });
    expect(spelledOut('n', sure)).toBe('no');
    const sizes = approval({ kind: 'question', decisions, options: ['n', 'y'] });
    expect(spelledOut('n', sizes)).toBe('n');
    for (const line of ['a', 'd', 'l', 'ye', '']) expect(spelledOut(line, request)).toBe(line);
  });

  test('reads plain words: yes or no, and the answers that a question offers', () => {
    expect(readPlain('yes', request)).toEqual({ as: 'approve' });
    expect(readPlain('y', request)).toBeNull();
    // A denial is asked for its reason.
    expect(readPlain('no', request)).toBeNull();
    expect(readChoice('no', request)).toBe('deny');
    for (const line of ['no, it is too late', 'No: it is too late', 'deny, it is too late']) {
      expect(readPlain(line, request)).toEqual({ as: 'deny', note: 'it is too late' });
    }
    expect(readPlain('no way', request)).toBeNull();
    const decisions = ['answer', 'deny'] as const;
    const asks = approval({ kind: 'question', decisions, options: ['Blue', 'Red'] });
    expect(readPlain('blue', asks)).toEqual({ as: 'answer', result: 'Blue' });
    expect(readPlain('green', asks)).toBeNull();
    const sizes = approval({ kind: 'question', decisions, options: ['S', 'M'] });
    expect(readPlain(' M ', sizes)).toEqual({ as: 'answer', result: 'M' });
    expect(readPlain('m', sizes)).toBeNull();
    const sure = approval({ kind: 'question', decisions, tool: 'node:sure' });
    expect(promptWords(asks)).toEqual(['Blue', 'Red', 'answer', 'deny', 'full', 'later']);
    const same = approval({ kind: 'question', decisions, options: ['full', 'x\u202e'] });
    expect(promptWords(same)).toEqual(['full', 'x\\u202e', 'answer', 'deny', 'later']);
    const long = approval({ kind: 'question', decisions, options: ['x'.repeat(90)] });
    expect(promptWords(long)).toEqual(['answer', 'deny', 'full', 'later']);
    expect(promptWords(sure)).toEqual(wordsOf(sure));
    expect(wordsOf(sure)).toEqual(['yes', 'no', 'full', 'later']);
    expect(readPlain('ok', sure)).toEqual({ as: 'answer', result: 'yes' });
    expect(readPlain('no', sure)).toEqual({ as: 'answer', result: 'no' });
    expect(readPlain('no, it is too late', sure)).toBeNull();
  });

  test.each([
    ['no action', []],
    ['every action', ['a1', 'a2']],
  ])('prompts for ids where %s needs approval, and takes no empty line', (_, asking) => {
    const asks = { then: 'ask', why: 'a rule' };
    const actions = ['a1', 'a2'].map((id) => ({
      id,
      tool: 't',
      arguments: {},
      ...(id === 'a2' && { after: ['a1'] }),
      ...(asking.includes(id) && { asks }),
    }));
    const some = followUp('some', planOf(actions));
    expect(some?.question).toBe('Ids of the actions:');
    expect(some?.read('')).toMatch('the actions are a1, a2');
    expect(some?.read('a9')).toMatch('expected ids');
    expect(some?.read('a2')).toMatch('with all dependencies: a2 needs a1: name both, or neither;');
    expect(some?.read('a1')).toEqual({ as: 'some', actions: ['a1'] });
  });

  test('prompts for ids, and takes an empty line where some actions need no approval', () => {
    const first = { id: 'a1', tool: 't', arguments: {} };
    const asks = { then: 'ask', why: 'a rule' };
    const some = followUp('some', planOf([first, { ...first, id: 'a2', asks }]));
    expect(some?.question).toContain('(empty: all that need no approval)');
    expect(some?.read('')).toEqual({ as: 'some' });
    expect(some?.read('a2, a1')).toEqual({ as: 'some', actions: ['a2', 'a1'] });
  });

  test('prompts for what a decision needs, and refuses the rest', () => {
    expect(followUp('approve', request)).toBeNull();
    expect(followUp('deny', request)?.read(' no ')).toEqual({ as: 'deny', note: 'no' });
    expect(followUp('deny', request)?.read('')).toEqual({ as: 'deny' });
    const edit = followUp('edit', request);
    expect(edit?.read('{"euros":20}')).toEqual({ as: 'edit', arguments: { euros: 20 } });
    for (const line of ['', '7', '[1]', '{"euros":']) expect(edit?.read(line)).toMatch('expected');
    const result = followUp('answer', request);
    expect(result?.read('"done"')).toEqual({ as: 'answer', result: 'done' });
    expect(result?.read('done')).toMatch('expected JSON');
    const happened = followUp('happened', request);
    expect(happened?.question).toBe('The result of the call as JSON (optional):');
    expect(happened?.read('')).toEqual({ as: 'happened' });
    const question = followUp('answer', approval({ kind: 'question' }));
    expect(question?.read('to Rome')).toEqual({ as: 'answer', result: 'to Rome' });
    expect(question?.read(' ')).toMatch('expected an answer');
    const limit = { name: 'steps', used: 5, limit: 5 } as const;
    const raise = followUp('raise', approval({ kind: 'limit', limit }));
    expect(raise?.read('10')).toEqual({ as: 'raise', arguments: { steps: 10 } });
    const time = followUp(
      'raise',
      approval({ kind: 'limit', limit: { ...limit, name: 'wallMs' } }),
    );
    expect(time?.question).toBe('Raise wall by (such as 10m):');
    expect(time?.read('10m')).toEqual({ as: 'raise', arguments: { wallMs: 600_000 } });
    expect(time?.read('soon')).toBe('expected a duration, such as 10m, got soon');
    expect(time?.read('5')).toBe('expected a duration with its unit, such as 5m or 5s');
    for (const line of ['', '0', '0s', '1.5', '1e3', '0x10']) {
      expect(time?.read(line)).toMatch('expected a duration');
    }
    for (const line of ['', '0', '-1', 'ten', '1.5']) expect(raise?.read(line)).toMatch('expected');
  });

  test('takes a decision and what it needs in one line', () => {
    const decisions = ['approve', 'edit', 'deny', 'answer'] as const;
    const asks = approval({ decisions });
    expect(readNamed(' Edit {"euros":20}', asks)).toEqual({ as: 'edit', arguments: { euros: 20 } });
    expect(readNamed('edit {"euros":', asks)).toMatch(/^expected a JSON object .*\(Unexpected/);
    expect(readNamed('answer: "done"', asks)).toEqual({ as: 'answer', result: 'done' });
    expect(readNamed('deny it is too late', asks)).toEqual({ as: 'deny', note: 'it is too late' });
    for (const line of ['approve it', 'edit', 'editor {}', 'raise 3', 'happened "x"']) {
      expect(readNamed(line, asks)).toBeNull();
    }
    const limit = { name: 'steps', used: 5, limit: 5 } as const;
    const raises = approval({ kind: 'limit', decisions: ['raise', 'deny'], limit });
    expect(readNamed('raise 10', raises)).toEqual({ as: 'raise', arguments: { steps: 10 } });
    expect(readNamed('raise it', raises)).toBe('expected a positive whole number, got it');
    expect(readNamed('raise 99999999999999999999', raises)).toBe(
      'expected at most 9007199254740991, got 99999999999999999999',
    );
    const wall = approval({ ...raises, limit: { name: 'wallMs', used: 5, limit: 5 } });
    expect(readNamed('raise 9999999h', wall)).toBe('expected at most 36500 days, got 9999999h');
    // The fields of a form are asked for, and a plan has words of its own.
    const form = { type: 'object', properties: { count: { type: 'integer' } } };
    expect(readNamed('answer 3', approval({ decisions, form }))).toBeNull();
    expect(readNamed('some a9', planOf([{ id: 'a1', tool: 't', arguments: {} }]))).toBeNull();
  });

  test('asks for the fields of a form one by one, and sends none that is left empty', async () => {
    const form = {
      type: 'object',
      required: ['region', 'count', 'sure'],
      properties: {
        region: { type: 'string', enum: ['north', 'south'], default: 'north' },
        count: { type: 'integer', minimum: 2 },
        sure: { type: 'boolean' },
        tags: { type: 'array', items: { type: 'string' } },
        ['__proto__']: { type: 'string' },
        note: { type: 'string' },
      },
    };
    const asks = approval({ kind: 'question', form: JSON.parse(JSON.stringify(form)) });
    const lines = ['west', '"south"', '', 'many', '2.5', '1', '3', 'maybe', 'yes', 'a, b', 'x', ''];
    const asked: string[] = [];
    const notes: string[] = [];
    const given = await completed(
      { as: 'answer', request: asks },
      {
        ask: async (question) => await Promise.resolve((asked.push(question), lines.shift() ?? '')),
        note: (line) => void notes.push(line),
      },
    );
    expect(JSON.parse(JSON.stringify(given))).toEqual(
      JSON.parse(
        '{"as":"answer","result":{"region":"south","count":3,"sure":true,"tags":["a","b"],"__proto__":"x"}}',
      ),
    );
    expect(asked[0]).toBe('region (text, required) [one of "north", "south"; default "north"]:');
    expect(notes).toEqual([
      'region: expected one of "north", "south", got "west"',
      'expected a value: the field is required',
      'expected a number',
      'count: expected an integer, got 2.5',
      'count: expected an integer of at least 2, got 1',
      'expected yes or no',
    ]);
  });

  test('goes back to the choices on an empty line, if the choice needs one', async () => {
    const empty = { ask: () => Promise.resolve(' '), note: () => undefined };
    for (const as of ['edit', 'answer'] as const) {
      expect(await completed({ as, request }, empty)).toBeNull();
    }
    expect(await completed({ as: 'deny', request }, empty)).toEqual({ as: 'deny' });
  });

  test.each([
    ['happened', {}, 'done', 'gives no result', {}],
    ['some', 'asking', ',', 'executes all that need no approval', {}],
  ] as const)(
    'says after an error what an empty line decides: %s',
    async (as, of, wrong, does, made) => {
      const actions = [
        { id: 'a1', tool: 't', arguments: {} },
        { id: 'a2', tool: 't', arguments: {}, asks: { then: 'ask', why: 'rule' } },
      ];
      const about = of === 'asking' ? planOf(actions) : approval({ kind: 'outcome_unknown' });
      const [lines, notes]: string[][] = [[wrong, ''], []];
      const ask = async () => await Promise.resolve(lines?.shift() ?? '');
      const note = (line: string): void => void notes?.push(line);
      expect(await completed({ as, request: about }, { ask, note })).toEqual({ as, ...made });
      expect(notes).toEqual([expect.stringMatching(new RegExp(`\\. An empty line ${does}\\.$`))]);
      // Where it leads back to the choices, the text says so.
      for (const back of ['edit', 'answer'] as const) {
        const [typed, said]: string[][] = [['{', ''], []];
        const given = await completed(
          { as: back, request },
          {
            ask: async () => await Promise.resolve(typed?.shift() ?? ''),
            note: (line) => void said?.push(line),
          },
        );
        expect([given, said?.[0]]).toEqual([
          null,
          expect.stringMatching(/\. An empty line leads back to the choices\.$/),
        ]);
      }
    },
  );

  test('names what a run refuses in the words that it offers', () => {
    const text = 'give "approve", "deny", or ids';
    for (const one of [approval(), planOf([{ id: 'a1', tool: 't', arguments: {} }])]) {
      expect(inOfferedWords(text, one)).toBe('give "yes", "no", or ids');
      expect(wordsOf(one)).toEqual(expect.arrayContaining(['yes', 'no']));
    }
    const asks = approval({ kind: 'question', decisions: ['answer', 'deny'] });
    expect(inOfferedWords(text, asks)).toBe(text);
  });

  test('asks nothing more about an address, and for no reason that nobody would read', async () => {
    const asks = approval({ kind: 'question', url: 'https://pay.test/1' });
    const never = { ask: () => Promise.reject(new Error('asked')), note: () => undefined };
    expect(await completed({ as: 'answer', request: asks }, never)).toEqual({
      as: 'answer',
      result: 'done',
    });
    expect(await completed({ as: 'deny', request: asks }, never)).toEqual({ as: 'deny' });
    expect(await completed({ as: 'abandon', request: asks }, never)).toEqual({ as: 'abandon' });
  });
});
