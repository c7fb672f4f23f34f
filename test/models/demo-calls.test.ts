import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { defineTool } from '../../src/tools/define-tool.js';
import { ask } from './demo-turn.js';

describe('several calls in one message', () => {
  const made = (name: string, works = true) =>
    defineTool({
      name,
      description: 'Does it.',
      effect: 'keyed',
      input: z.object({ animal: z.number(), note: z.string().optional() }),
      execute: ({ animal }) => {
        if (!works) throw new Error('the vet is closed');
        return `${name} ${animal}`;
      },
    });
  const tools = [made('look_up'), made('remind')];

  it('are made one after another, in the order of the message', async () => {
    const { answer, calls } = await ask(
      'remind {"animal":8}, then look_up {"animal":1}, then remind {"animal":9}',
      tools,
    );
    expect(calls).toEqual(['remind {"animal":8}', 'look_up {"animal":1}', 'remind {"animal":9}']);
    expect(answer).toContain(
      'remind returned "remind 8".\nlook_up returned "look_up 1".\nremind returned "remind 9".',
    );
  });

  it('are found with a word between the name and what it gets', async () => {
    const { calls } = await ask(
      'call remind with {"animal":8} and look_up and {"animal":1}',
      tools,
    );
    expect(calls).toEqual(['remind {"animal":8}', 'look_up {"animal":1}']);
  });

  it('stop at one that fails, and the answer says so', async () => {
    const { answer, calls } = await ask('remind {"animal":8}, then look_up {"animal":1}', [
      made('look_up'),
      made('remind', false),
    ]);
    expect(calls).toEqual(['remind {"animal":8}']);
    expect(answer).toContain('remind failed: the vet is closed');
    expect(answer).toContain('look_up was not called: remind failed.');
  });

  it('stop at the limit of the turn', async () => {
    const { answer, calls } = await ask('remind {"animal":8}, then look_up {"animal":1}', tools, {
      maxSteps: 1,
    });
    expect(calls).toEqual(['remind {"animal":8}']);
    expect(answer).toContain('look_up was not called: no further call was permitted.');
  });

  it('are not made if one of them has no valid JSON, and a name within arguments is no call', async () => {
    const wrong = await ask('remind {"animal":8}, then look_up {"animal":}', tools);
    expect(wrong.calls).toEqual([]);
    expect(wrong.answer).toContain('The arguments after look_up are not JSON.');
    const within = await ask('remind {"animal":8,"note":"look_up {\\"animal\\":1}"} {now}', tools);
    expect(within.calls).toEqual([String.raw`remind {"animal":8,"note":"look_up {\"animal\":1}"}`]);
  });
});
