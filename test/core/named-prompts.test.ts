import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createAgentCatalog } from '../../src/agents/agent-definition.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { PromptTable } from '../../src/agents/prompts.js';
import { acceptMessage, askProblem } from '../../src/core/run/ask.js';
import type { AgentDefinition } from '../../src/core/definition/definition.js';
import type { Ask } from '../../src/core/input/inbox.js';
import { parseRunInput } from '../../src/core/input/input.js';
import { stateShape } from '../../src/core/guards/state.js';
import { promptProblem, promptText } from '../../src/core/input/named-prompt.js';
import { currentDefinition, definitionFor } from '../../src/core/state/turn-definition.js';
import { reduce } from '../../src/core/run/reduce.js';
import { initialState, type RunState } from '../../src/core/state/state.js';
import { getOpenBatch, getOutcome } from '../../src/core/state/turn.js';
import { template } from '../../src/prompts/template.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { unloadedConfig } from '../../src/core/rules/limits.js';
import { refusalText } from '../support/refusal-text.js';

const SCALAR = z.union([z.string(), z.number(), z.boolean()]);

const tool = (name: string) =>
  defineTool({
    name,
    description: name,
    input: z.object({}),
    effect: 'read',
    execute: () => name,
  });

function definitionWith(prompts: PromptTable): AgentDefinition {
  const agent = defineAgent({
    name: 'a',
    instructions: 'x',
    model: 'm',
    output: z.object({ reply: z.string() }),
    attempts: 7,
    settings: { temperature: 1, seed: 3 },
    tools: [tool('read'), tool('list')],
    prompts,
  });
  const found = createAgentCatalog([agent], { defaultModel: '', builtIn: [tool('built_in')] });
  const loaded = found.named('a');
  if (loaded === undefined) throw new Error('the agent is not there');
  return loaded.definition;
}

const definition = definitionWith({
  plan: {
    text: template('{{who}} goes to {{city}} for {{days}} days.', {
      args: z.object({
        who: z.enum(['Ann', 'Bob']),
        city: z.string().max(9),
        days: z.int().min(1).default(2),
      }),
    }),
    output: z.object({ steps: z.array(z.string()) }),
    attempts: 2,
    tools: ['list'],
    settings: { temperature: 0 },
  },
  talk: { text: 'Say {{it}}.', output: null, tools: [] },
  again: { text: 'Again.' },
});

const loaded = (open = true): RunState =>
  initialState({ ...unloadedConfig('a'), definition }, { open });

/** Returns the state in the turn of this message. */
function turnOf(state: RunState, ask: Ask): RunState {
  const { event } = acceptMessage(state, ask, 'm');
  if (event === null) throw new Error('the message was there before');
  return reduce(reduce(state, event), { type: 'turn-begun', at: 1 });
}

describe('the options of a turn', () => {
  test('come from its prompt, and from the agent if the prompt does not set them', () => {
    const plan = definitionFor(definition, { prompt: 'plan' });
    expect(plan.tools.map(({ name }) => name)).toEqual(['built_in', 'list']);
    expect(plan).toMatchObject({ attempts: 2, settings: { temperature: 0, seed: 3 } });
    expect(JSON.stringify(plan.output)).toContain('steps');
    expect(plan.instructions).toBe(definition.instructions);
    const talk = definitionFor(definition, { prompt: 'talk' });
    expect(talk).toMatchObject({ toolChoice: 'none', tools: definition.tools });
    expect([talk.output, talk.attempts]).toEqual([undefined, undefined]);
    expect(definitionFor(definition, { prompt: 'again' })).toEqual(definition);
    expect(definitionFor(definition, {})).toEqual(definition);
  });

  test('last for the turn, until another message of the turn names another prompt', () => {
    const first = turnOf(loaded(), { prompt: 'plan', args: { who: 'Ann', city: 'Rome' } });
    expect(first.transcript.messages.at(-1)?.text).toBe('Ann goes to Rome for 2 days.');
    expect(stateShape(first, 'state')).toBeNull();
    expect(currentDefinition(first).attempts).toBe(2);
    const joined = (ask: Ask): RunState => {
      const { event } = acceptMessage(first, { ...ask, mode: 'steer' }, 'n');
      return event === null
        ? first
        : reduce(reduce(first, event), { type: 'messages-joined', at: 2 });
    };
    expect(currentDefinition(joined({ message: 'Soon.' })).attempts).toBe(2);
    expect(currentDefinition(joined({ prompt: 'talk' })).toolChoice).toBe('none');
    expect(currentDefinition(turnOf(loaded(), { message: 'Hello' }))).toEqual(definition);
  });
});

test('a turn without tools may answer in text, even if plain text is a failure for the agent', () => {
  const strict = { ...definition, onPlainText: 'fail' } as const;
  const ended = (ask: Ask) => {
    const { output: _, ...noOutput } = strict;
    const state = initialState({ ...unloadedConfig('a'), definition: noOutput }, { open: true });
    const usage = { inputTokens: 1, outputTokens: 1, cachedTokens: 0 };
    const reply = { text: 'Hi', finish: 'stop', usage } as const;
    return getOutcome(reduce(turnOf(state, ask), { type: 'model-replied', reply, at: 2 }));
  };
  expect(ended({ message: 'Hello' })).toMatchObject({ reason: 'invalid_output' });
  expect(ended({ prompt: 'talk' })).toMatchObject({ status: 'completed', answer: 'Hi' });
});

test('a turn without tools executes no call, whatever the server makes of the request', () => {
  const usage = { inputTokens: 1, outputTokens: 1, cachedTokens: 0 };
  const calls = [{ name: 'list', arguments: '{}', digest: 'a'.repeat(64) }];
  const reply = { text: '', calls, finish: 'calls', usage } as const;
  const results = (ask: Ask) => {
    const asked = reduce(turnOf(loaded(), ask), { type: 'model-replied', reply, at: 2 });
    return [getOpenBatch(asked) === null, asked.transcript.messages.at(-1)?.text];
  };
  expect(results({ prompt: 'again' })).toEqual([false, '']);
  expect(results({ prompt: 'talk' })).toEqual([
    true,
    expect.stringContaining('no tool may be called in this turn; answer in text'),
  ]);
});

test('a prompt that cannot be filled in leaves a line in the conversation, not its text', () => {
  const long = definitionWith({ p: { text: template('{{a}}'.repeat(9), { args: ['a'] }) } });
  const unloaded = initialState(unloadedConfig('a'), { open: true });
  const texts = (ask: Ask): unknown => {
    const { event } = acceptMessage(unloaded, ask, 'm');
    if (event === null) throw new Error('the message was there before');
    const received = reduce(unloaded, event);
    const state = { ...received, config: { ...received.config, definition: long } };
    const begun = reduce(state, { type: 'turn-begun', at: 1 });
    expect(getOutcome(begun)).toMatchObject({ status: 'failed', reason: 'input' });
    return begun.transcript.messages.map(({ text }) => text);
  };
  const line = ['[a message that could not be read]'];
  expect(texts({ prompt: 'p', args: { a: 'x'.repeat(250_000) } })).toEqual(line);
  expect(texts({ prompt: 'q' })).toEqual(line);
});

test('the texts of waiting prompts count toward the limit of what is pinned', () => {
  const text = 'x'.repeat(15_000);
  const state = initialState(
    { ...unloadedConfig('a'), definition: definitionWith({ p: { text } }) },
    { open: true },
  );
  const ask = { prompt: 'p', pin: true };
  let waiting = state;
  let accepted = 0;
  while (refusalText(waiting, ask, `m${accepted}`) === null) {
    const { event } = acceptMessage(waiting, ask, `m${accepted}`);
    if (event !== null) waiting = reduce(waiting, event);
    accepted += 1;
  }
  expect(accepted).toBe(9);
  // Before the agent is loaded, the length of its prompts is unknown.
  const early = initialState(unloadedConfig('a'), { open: true });
  const long = definitionWith({ p: { text: 'x'.repeat(20_000) } });
  const { event } = acceptMessage(early, ask, 'm');
  const received = event === null ? early : reduce(early, event);
  const begun = reduce(
    { ...received, config: { ...received.config, definition: long } },
    { type: 'turn-begun', at: 1 },
  );
  expect(begun.transcript.messages).toMatchObject([{ role: 'user', text: 'x'.repeat(20_000) }]);
  expect(begun.transcript.messages[0]).not.toHaveProperty('pinned');
});

test('a message has only the name and the arguments; the text is in the pinned definition', () => {
  const { event } = acceptMessage(loaded(), { prompt: 'again', id: 'm' }, 'm');
  expect(event).toEqual({
    type: 'message-received',
    message: { id: 'm', text: '', turn: 1, prompt: 'again' },
  });
});

describe('a prompt is filled in once', () => {
  test.each([
    ['talk', {}, 'Say {{it}}.'],
    ['plan', { who: 'Bob', city: '{{who}}', days: 3 }, 'Bob goes to {{who}} for 3 days.'],
  ])('%s with %j', (prompt, args, text) => {
    expect(promptText(definition, { prompt, args })).toBe(text);
  });
});

describe('a prompt is refused with the field, the value, and the fix', () => {
  const good = { who: 'Ann', city: 'Rome' };
  test.each<[Ask, string]>([
    [{ prompt: 'plna', args: good }, 'got "plna" (nearest: plan)'],
    [{ prompt: 'plan', args: { who: 'Ann' } }, 'args.city: expected a value, got none'],
    [{ prompt: 'plan', args: { ...good, town: 1 } }, 'args.town: expected an argument of prompt'],
    [{ prompt: 'plan', args: { ...good, who: 'Eve' } }, 'args.who: expected one of "Ann", "Bob"'],
    [
      { prompt: 'plan', args: { ...good, days: 1.5 } },
      'args.days: expected a whole number, got 1.5',
    ],
    [{ prompt: 'plan', args: { ...good, days: 0 } }, 'args.days: expected at least 1, got 0'],
    [{ prompt: 'plan', args: { ...good, city: 'Samarkand!' } }, 'expected at most 9 characters'],
    [
      { prompt: 'again', args: { a: 1 } },
      'args.a: expected an argument of prompt "again" (it has none)',
    ],
    [{ prompt: '__proto__' }, 'got "__proto__"'],
  ])('%j', (ask, problem) => {
    expect(refusalText(loaded(), ask, 'm')).toContain(problem);
    // The run may get the message before it has an agent: then its turn ends with the same error.
    const early = acceptMessage(initialState(unloadedConfig('a'), { open: true }), ask, 'm').event;
    const state = early === null ? loaded() : reduce(loaded(), early);
    const outcome = getOutcome(reduce(state, { type: 'turn-begun', at: 1 }));
    expect(outcome).toMatchObject({ status: 'failed', reason: 'input' });
    expect(outcome?.error).toContain(problem);
  });

  test.each([
    [{ prompt: 7 }, 'prompt: expected the name of a prompt of the agent, got 7'],
    [{ prompt: 'a', message: 'b' }, 'message: cannot be combined with "prompt"'],
    [{ prompt: 'a', input: {} }, 'input: cannot be combined with "prompt"'],
    [{ message: 'b', args: {} }, 'args: expected a prompt that takes them'],
    [{ prompt: 'a', args: [] }, 'args: expected an object'],
    [{ prompt: 'a', args: { a: 'x'.repeat(300_000) } }, 'args: expected at most'],
  ])('in a message, %j', (ask, problem) => {
    expect(askProblem(ask)).toContain(problem);
  });

  test('in the input of a run', () => {
    const problem = (given: object) => parseRunInput({ agent: 'a', ...given });
    expect(problem({ prompt: 'plan', promptArgs: {} })).not.toHaveProperty('problem');
    expect(problem({ promptArgs: {}, message: 'x' })).toHaveProperty(
      'problem',
      'promptArgs: expected a prompt; give "prompt" too',
    );
    expect(problem({ prompt: 'plan', message: 'x' })).toHaveProperty('problem');
  });

  test('when its filled-in text is too long', () => {
    const long = definitionWith({ p: { text: template('{{a}}'.repeat(9), { args: ['a'] }) } });
    const args = { a: 'x'.repeat(30_000) };
    expect(promptProblem(long, { prompt: 'p', args })).toContain('got 270000');
    const state = initialState({ ...unloadedConfig('a'), definition: long }, { open: true });
    const pinned = { prompt: 'p', args: { a: 'x'.repeat(2_000) }, pin: true };
    expect(refusalText(state, pinned, 'm')).toContain('pin: expected a prompt of at most 16384');
  });

  test.each([
    [{ what: { a: 1 } }, 'args.what: expected a string, or a number, or a boolean, got'],
    [{ what: [1] }, 'args.what: expected a string'],
    [{ what: null }, 'args.what: expected a string'],
    [{ what: 'x', whom: 7 }, 'args.whom: expected a string, or null, got 7'],
    [{ what: 7, whom: null }, null],
    [{ what: true, whom: 'x' }, null],
  ])('of several types are checked: %j', (args, problem) => {
    const whom = z.string().nullable().optional();
    const several = definitionWith({
      p: { text: template('{{what}}', { args: ['what'] }) },
      q: { text: template('{{what}}, {{whom}}', { args: z.object({ what: SCALAR, whom }) }) },
    });
    for (const prompt of 'whom' in args ? ['q'] : ['p', 'q']) {
      const found = promptProblem(several, { prompt, args });
      if (problem === null) expect(found).toBeNull();
      else expect(found).toContain(problem);
    }
  });
});

describe('a definition with a prompt that cannot work is refused', () => {
  test.each<[PromptTable[string], string]>([
    [
      { text: 'x', tools: ['raed'] },
      'prompts.p.tools: expected names of the agent\'s tools, got "raed" (nearest: read)',
    ],
    [{ text: 'x', output: null, attempts: 3 }, 'prompts.p.attempts: expected an output'],
    [{ text: ' ' }, 'prompts.p.text: expected a text or a template'],
    [{ text: 'x', settings: { model: 'y' } }, 'prompts.p.settings.model: expected no such setting'],
    [{ text: 'x', settings: { nativeTools: [] } }, 'expected no `nativeTools`'],
    [
      { text: template('{{a}}', { args: z.object({ a: z.email() }) }) },
      'prompts.p.text: expected arguments that a run can check, got one with "format"',
    ],
  ])('%j', (prompt, problem) => {
    expect(() => definitionWith({ p: prompt })).toThrow(problem);
  });

  test('if a calling agent or a graph misspells it', () => {
    const callee = defineAgent({
      name: 'b',
      description: 'b',
      instructions: 'x',
      prompts: { plan: { text: 'x' } },
    });
    const agents = [{ agent: callee, prompt: 'plam' }];
    expect(() => defineAgent({ name: 'c', instructions: 'x', agents })).toThrow(
      'agent "c": agents: expected a prompt of agent "b", got "plam" (nearest: plan)',
    );
  });
});
