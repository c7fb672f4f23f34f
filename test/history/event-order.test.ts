import { describe, expect, test } from 'vitest';
import type { HistoryEvent } from '../../src/history/decode-event.js';
import { createProjector } from '../../src/history/projection.js';
import type { Ask } from '../../src/core/inbox.js';
import { config, says } from '../support/scripts.js';

type Told<F = HistoryEvent> = F extends HistoryEvent ? Omit<F, 'id' | 'at'> : never;

const input = { agent: 'test', message: 'go', open: true };
const begin: readonly Told[] = [
  { type: 'started', workflowType: 'agent', input, carried: null, before: '', firstRunId: 'r' },
  { type: 'local', activity: 'loadAgent', result: config() },
  { type: 'scheduled', activity: 'callModel', activityId: '3', input: { upTo: 1 }, summary: '' },
];
const replied: Told = { type: 'completed', scheduled: 3, result: says('first') };
const steered: Told = {
  type: 'update',
  name: 'ask',
  updateId: 'u1',
  input: { message: 'also', mode: 'steer' } satisfies Ask,
};
const again: Told = {
  type: 'scheduled',
  activity: 'callModel',
  activityId: '9',
  input: { upTo: 3 },
  summary: '',
};

function project(facts: readonly Told[]): ReturnType<typeof createProjector> {
  const projector = createProjector();
  facts.forEach((fact, index) => projector.push({ ...fact, id: index + 1, at: index }));
  return projector;
}

const texts = (facts: readonly Told[]): readonly string[] =>
  project(facts)
    .view()
    .said.map(({ text }) => text);

describe('what the history has behind an event, and the workflow hears before it', () => {
  const task: readonly Told[] = [{ type: 'task-started' }, { type: 'task-completed' }];

  test('joins the turn that would else have ended with the reply', () => {
    const facts = [...begin, replied, ...task, steered, again];
    expect(texts(facts)).toEqual(['go', 'first', 'also']);
    expect(project(facts).view().turns).toEqual([]);
  });

  test('begins a turn of its own when the workflow had looked at the reply before', () => {
    const memo: Told = { type: 'memo', fields: { turn: 1, status: 'completed', reason: 'answer' } };
    const facts = [...begin, replied, ...task, memo, ...task, steered, again];
    expect(texts(facts)).toEqual(['go', 'first', 'also']);
    expect(
      project(facts)
        .view()
        .turns.map(({ turn }) => turn),
    ).toEqual([1]);
    expect(project(facts).view().state?.turn.number).toBe(2);
  });

  test('is not foreseen: a reply that nobody has looked at yet is told ahead, and is not settled', () => {
    const projector = project([...begin, replied]);
    expect(projector.view().turns).toHaveLength(1);
    expect(projector.settled().turns).toEqual([]);
    expect(projector.settled().inFlight.size).toBe(1);
  });
});
