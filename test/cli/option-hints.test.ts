import { describe, expect, test } from 'vitest';
import { declaredCommands } from '../../scripts/reference/commands.js';
import { COMMAND_SYNONYMS, OPERANDS, SYNONYMS } from '../../src/cli/input/option-hints.js';
import { OPTIONS } from '../../src/cli/input/options.js';
import { commandLine } from '../support/command.js';

const command = await commandLine();

describe('an option under another name', () => {
  test.each([
    ['deny x r1 --reason no', '(Did you mean --note?)'],
    ['deny x r1 --reason=no', '(Did you mean --note?)'],
    ['deny x r1 --message no', '(Did you mean --note?)'],
    ['resolve x r1 --as abandon --reason no', '(Did you mean --note?)'],
    ['resolve x r1 --as raise', '(raise a limit with: npx perdure limits x --add NAME=N)'],
    ['resolve x r1 --as edit', '(change the arguments with: npx perdure edit x r1 --arguments'],
    [
      'resolve x r1 --as edit --config c.ts --namespace n',
      'edit x r1 --arguments JSON --config c.ts --namespace n)',
    ],
    ['approve x r1 --note fine', '(an approval has no note; deny has one.'],
    ['approve x r1 --reason fine', 'with the command send)'],
    ['cancel x --reason late', '(it takes no reason: your name (--by) and the time are recorded)'],
    ['pause x --reason late', '(it takes no reason: '],
    ['run files --message hello', '(The message is no option: give it as MESSAGE after'],
    ['send x -m hello', '(The message is no option: give it as MESSAGE after'],
    ['run --agent files hello', '(The agent is no option: give it as AGENT)'],
    ['answer x r1 --text yes', '(The text is no option: give it as TEXT after'],
    ['run files hello --steps 3', '(Did you mean --limit steps=N?)'],
    ['run files hello --name x', '(Did you mean --id?)'],
    ['list --limit 3', '(Did you mean --max?)'],
    ['schedule create x hello --tz UTC', '(Did you mean --time-zone?)'],
    ['list --queue x', '(Did you mean --task-queue?)'],
    ['close x y', 'error: unexpected argument "y"\n(usage: perdure close'],
    ['run files hello --limti steps=3', '(Did you mean --limit?)'],
    ['cancel x --turn 9', 'error: unexpected argument "9"\n(--turn takes no value)'],
    ['approve x r1 --some a1 a2', '(give the ids with commas: --some a1,a2)'],
    ['mcp acept shop', 'error: unexpected arguments "acept" "shop"\n(Did you mean accept?)'],
  ])('perdure %s', async (line, hint) => {
    const { code, stderr } = await command.here(line.split(' ')).ended;
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(hint) as unknown });
  });

  test('is named with --json, too', async () => {
    const words = ['deny', 'x', 'r1', '--reason', 'no', '--json'];
    const { stdout } = await command.here(words).ended;
    expect(JSON.parse(stdout)).toEqual({
      code: 'usage',
      error: "unknown option '--reason'\n(Did you mean --note?)",
    });
  });
});

test.each([
  ['ls', "error: unknown command 'ls'\n(Did you mean list?)"],
  ['logs x', '(Did you mean transcript?)'],
  ['aprove --help', '(Did you mean approve?)'],
  ['help aprove', '(Did you mean approve?)'],
  ['--json aprove --help', '(Did you mean approve?)'],
  ['--config x.ts aprove --help', '(Did you mean approve?)'],
  ['schedule creat --help', '(Did you mean create?)'],
  ['trigger x', '(Did you mean schedule trigger?)'],
  ['schedule describe x', "error: unknown command 'describe'\n(Did you mean show?)"],
  ['schedule trigge x', '(Did you mean trigger?)'],
])('perdure %s names the command that is meant', async (line, hint) => {
  const { code, stderr } = await command.here(line.split(' ')).ended;
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(hint) as unknown });
});

test('every command that a hint names exists, and no other name does', async () => {
  const paths = (await declaredCommands()).map(({ entry }) =>
    [entry.parent?.name() ?? '', entry.name()].join(' '),
  );
  for (const [group, words] of Object.entries(COMMAND_SYNONYMS)) {
    for (const meant of Object.values(words)) expect(paths).toContain(`${group} ${meant}`);
    const names = Object.keys(words).flatMap((each) => each.split(' '));
    for (const name of names) expect(paths).not.toContain(`${group} ${name}`);
    expect(new Set(names).size).toBe(names.length);
  }
});

test('every option and operand that a hint names exists', async () => {
  const flags = new Set(Object.values(OPTIONS).map((one) => one.flags.split(' ')[0]));
  for (const name of Object.values(SYNONYMS).flat()) expect(flags).toContain(name.split(' ')[0]);
  const entries = (await declaredCommands()).map(({ entry }) => entry);
  const operands = new Set(
    entries.flatMap((entry) => entry.registeredArguments.map((one) => one.name())),
  );
  for (const name of Object.values(OPERANDS)) expect(operands).toContain(name);
});
