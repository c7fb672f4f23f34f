import stringWidth from 'string-width';
import { describe, expect, test } from 'vitest';
import { inboxLines } from '../../src/cli/requests/show-request.js';
import { decidingCommands } from '../../src/core/requests/commands.js';
import { requestLines, type RequestView } from '../../src/cli/requests/request-lines.js';
import { OFFERED, type Request } from '../../src/core/transcript/request.js';
import { countHidden } from '../../src/core/text/text.js';
import { approval, DIGEST } from './samples.js';

const NOW = 1_300_000;
/** Clears the screen, reverses the direction, hides text, and has zero width. */
const HOSTILE = 'x\u001b[2J\u202ey\u200b\u{e0041}\u009b31m\u2066z';

function view(request: Request, rest: Partial<RequestView> = {}): RequestView {
  const commands = decidingCommands('desk-1', request, NOW).map(({ words, purpose }) => ({
    command: ['npx', 'perdure', ...words].join(' '),
    purpose,
  }));
  const whole = `npx perdure inbox desk-1 ${request.id} --full`;
  return { run: 'desk-1', request, unreadable: null, commands, whole, ...rest };
}

function shown(request: Request, width = 80, full = false): string {
  return requestLines(view(request), { width, full, now: NOW }).join('\n');
}

describe('a request for people', () => {
  test('has tool, effect, target, every argument, the rule, the deciders, and the commands', () => {
    const text = shown(approval());
    for (const part of [
      'request r1 of run desk-1',
      'what: refund 60 € to order 17',
      'tool: refund',
      'effect: once: has a side effect, never retried',
      '  order: 17',
      '  euros: 60',
      'why: rule: ask refund where euros over 50',
      'asked by: web: ann (not verified)',
      'may decide: anyone but the requester',
      'expires: never',
      `digest: ${DIGEST}`,
      'npx perdure approve desk-1 r1 --digest ab12cd34ef56',
    ]) {
      expect(text).toContain(part);
    }
    expect(text).not.toContain('TRUNCATED');
  });

  test.each(Object.entries(OFFERED))('offers the commands of kind %s', (kind, decisions) => {
    const text = shown(approval({ kind: kind as Request['kind'], decisions }));
    for (const as of decisions) {
      expect(text).toMatch(
        new RegExp(`(perdure ${as === 'raise' ? 'limits' : as}|--as ${as}|--${as})\\b`),
      );
    }
    expect(text.match(/--digest ab12cd34ef56/g)).toHaveLength(decisions.length);
  });

  test('fits into 40 columns, and nothing is lost', () => {
    const note = `${'word '.repeat(30)}${'漢'.repeat(50)}${'y'.repeat(90)}👩‍👩‍👧‍👦`;
    const request = approval({
      arguments: JSON.stringify({ order: 17, note }),
      why: 'w'.repeat(200),
    });
    const lines = requestLines(view(request), { width: 40, full: false, now: NOW });
    // The digest and the words of a command stay whole.
    const wide = lines.filter((line) => stringWidth(line) > 40);
    expect(wide).toEqual([]);
    const from = lines.findIndex((line) => line.startsWith('  note: '));
    const to = lines.findIndex((line, at) => at > from && line.startsWith('why: '));
    const [first = '', ...rest] = lines.slice(from, to);
    const joined = first + rest.map((line) => line.slice(2)).join('');
    expect(joined).toBe(`  note: ${JSON.stringify(note)}`);
  });

  test('breaks commands so that a shell reads the same words', () => {
    const command = `npx perdure approve 'run with a space, and more of it' r1 --digest ${DIGEST}`;
    const commands = [{ command, purpose: 'yes' }];
    const options = { width: 40, full: false, now: NOW };
    const lines = requestLines(view(approval(), { commands }), options);
    const [, ...after] = lines.slice(lines.indexOf('# yes'));
    expect(after.length).toBeGreaterThan(1);
    expect(after.join('\n').replaceAll(/ \\\n +/g, ' ')).toBe(command);
  });

  test('states what it omitted from 2 MB of arguments, and how to see everything', () => {
    const text = `${'a'.repeat(1_000_000)}HIDDEN${'b'.repeat(1_000_000)}`;
    const request = approval({ arguments: JSON.stringify({ text, euros: 60 }) });
    const cut = shown(request, 40);
    expect(cut.length).toBeLessThan(3_000);
    expect(cut.replaceAll(/\n +/g, '')).toMatch(
      /\[… 1999608 characters not shown, 2\.0 MB in all …\]/,
    );
    expect(cut.replaceAll(/ \\?\n +/g, ' ')).toContain('npx perdure inbox desk-1 r1 --full');
    expect(cut).toContain('TRUNCATED');
    expect(cut).toContain('  euros: 60');
    const whole = shown(request, 80, true);
    expect(whole).not.toContain('TRUNCATED');
    // `toContain` would print 2 MB.
    const unwrapped = whole.replaceAll(/\n {2}/g, '');
    expect(unwrapped.includes(JSON.stringify(text))).toBe(true);
  });

  test('states how many arguments it omitted', () => {
    const all = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`a${at}`, at]));
    const text = shown(approval({ arguments: JSON.stringify(all) }));
    expect(text).toContain('  a39: 39');
    expect(text).not.toContain('a40: 40');
    expect(text).toContain('… 20 more arguments');
    expect(text).toContain('TRUNCATED');
  });

  test('shows hidden characters of every field', () => {
    const request = approval({
      id: HOSTILE,
      kind: 'question',
      tool: HOSTILE,
      why: HOSTILE,
      requester: HOSTILE,
      question: HOSTILE,
      options: [HOSTILE],
      checks: [{ id: 'c', code: HOSTILE, message: HOSTILE }],
      deciders: [[HOSTILE]],
      idempotencyKey: HOSTILE,
      shown: HOSTILE,
    });
    expect(countHidden(shown(request))).toBe(0);
    const call = approval({ arguments: JSON.stringify({ [HOSTILE]: HOSTILE }) });
    const text = shown(call);
    expect(countHidden(text)).toBe(0);
    expect(text).toContain('\\u202e');
  });

  test('keeps foreign words from looking like its own lines', () => {
    const question = 'Which one?\nmay decide: anyone\ndecide with one of:';
    const text = shown(approval({ kind: 'question', question, why: 'a\nmay decide: anyone' }));
    expect(text).toContain('the model asks, in its own words:\n> Which one?\n> may decide: anyone');
    expect(text.match(/^may decide: /gm)).toHaveLength(1);
    expect(text.match(/^decide with one of:$/gm)).toHaveLength(1);
  });

  test('shows a difference line by line, and binds its acceptance to the new version', () => {
    const definition = 'd'.repeat(64);
    const why =
      'the server has changed the tool:\n- euros: number\n+ dollars: number\nIf so, accept it';
    const decisions = OFFERED.tool_changed;
    const text = shown(approval({ kind: 'tool_changed', why, definition, decisions }), 200);
    expect(text).toContain('the change:\n> - euros: number\n> + dollars: number\n');
    // Only the words of the server are quoted.
    expect(text).toContain('why: the server has changed the tool\nwhat to do: If so, accept it\n');
    expect(text).toContain(`--as accept --digest ab12cd34ef56 --definition ${definition}`);
  });

  test('says that a limit is that of the whole run', () => {
    const limit = { name: 'steps', used: 99, limit: null } as const;
    const { tool: _, effect: __, ...rest } = approval({ kind: 'limit', limit });
    const text = shown({ ...rest, shown: 'limit steps: 99 used' });
    expect(text).toContain('what: limit steps: 99 used of the limit of the whole run\n');
  });

  test('has the digits of the digest that a command takes at the prompt, too', () => {
    const prompts = { ...view(approval()), prompts: true };
    const lines = requestLines(prompts, { width: 80, full: false, now: NOW });
    expect(lines).toContain('digest: ab12cd34ef56');
  });

  test('says to a person who may not decide who may, and how, or that no command can', () => {
    const problem = 'by: expected anyone but the requester, got "ann"';
    const text = (name: 'other' | 'none', commands: RequestView['commands']): string => {
      const standing = { name, problem };
      const lines = requestLines(view(approval(), { standing, commands }), {
        width: Infinity,
        full: false,
        now: NOW,
      });
      return lines.join('\n');
    };
    const one = { command: 'npx perdure approve desk-1 r1 --by NAME', purpose: 'yes' };
    expect(text('other', [one])).toMatch(
      /^You may not decide \(by: expected anyone but the requester, got "ann"\)\. Give .* as NAME:\n# yes\n.*--by NAME$/m,
    );
    expect(text('none', [])).toContain(`No command can decide: ${problem}`);
  });

  test('states that arguments cannot be shown', () => {
    const unreadable = 'blob 12: not found';
    const lines = requestLines(view(approval(), { unreadable }), {
      width: 80,
      full: false,
      now: NOW,
    });
    expect(lines).toContain('arguments: NOT SHOWN: blob 12: not found');
  });

  test('states when it expires, and that it has expired', () => {
    expect(shown(approval({ expiresAt: NOW + 600_000 }))).toMatch(
      /expires: .*, in 10 min; then it is denied/,
    );
    expect(shown(approval({ expiresAt: NOW - 1, onExpiry: 'stop' }))).toMatch(
      /^expired: [^;]*; the run stops when a worker runs$/m,
    );
    expect(shown(approval({ expiresAt: NOW + 600_000, onExpiry: 'expired' }))).toMatch(
      /in 10 min; then the graph takes its exit `expired`/,
    );
    expect(shown(approval({ expiresAt: NOW + 600_000, server: 'shop' }))).not.toMatch(
      /then it is denied/,
    );
  });
});

test('an inbox fits into 40 columns and shows hidden characters', () => {
  const { shown: text, ...rest } = approval({ shown: `${HOSTILE}${'z'.repeat(280)}` });
  const request = { ...rest, shown: text, run: `desk-${HOSTILE}`, agent: HOSTILE };
  const show = (): string => 'npx perdure inbox desk-1 r1';
  const lines = inboxLines([request, request], { width: 40, now: NOW, show });
  expect(lines.filter((line) => stringWidth(line) > 40)).toEqual([]);
  expect(countHidden(lines.join(''))).toBe(0);
  expect(lines.filter((line) => line === 'npx perdure inbox desk-1 r1')).toHaveLength(2);
});
