import { describe, expect, test } from 'vitest';
import type { Ask } from '../../src/core/input/inbox.js';
import type { EventBody } from '../../src/history/history-event.js';
import { createProjector } from '../../src/history/projection.js';
import { config, textReply, SHORT } from '../support/scripts.js';

const input = { agent: 'test', message: 'go', open: true };
const begin: readonly EventBody[] = [
  {
    type: 'started',
    workflowType: 'agent',
    input,
    carried: null,
    previousRunId: '',
    start: { cronSchedule: '', hasRetryPolicy: false, hasParent: false, isContinued: false },
    firstRunId: 'r',
    root: 'r',
  },
  { type: 'local', activity: 'loadAgent', completedAt: 0, result: config() },
  { type: 'scheduled', activity: 'callModel', activityId: '3', input: { upTo: 1 }, summary: '' },
];
const replied: EventBody = { type: 'completed', scheduled: 3, result: textReply('first') };
const steered: EventBody = {
  type: 'update',
  updateId: 'u1',
  request: { name: 'ask', input: { message: 'also', mode: 'steer' } satisfies Ask },
};
const calledAgain: EventBody = {
  type: 'scheduled',
  activity: 'callModel',
  activityId: '9',
  input: { upTo: 3 },
  summary: '',
};

function push(events: readonly EventBody[]): ReturnType<typeof createProjector> {
  const projector = createProjector();
  events.forEach((event, index) => projector.push({ ...event, id: index + 1, at: index }));
  return projector;
}

const texts = (events: readonly EventBody[]): readonly string[] =>
  push(events)
    .view()
    .messages.map(({ text }) => text);

describe('an update that the history has after an event, and the workflow processes before it', () => {
  const task: readonly EventBody[] = [
    { type: 'task-started', segment: SHORT },
    { type: 'task-completed' },
  ];

  test('joins the turn that would otherwise have ended with the reply', () => {
    const events = [...begin, replied, ...task, steered, calledAgain];
    expect(texts(events)).toEqual(['go', 'first', 'also']);
    expect(push(events).view().turns).toEqual([]);
  });

  test('begins a new turn if the workflow had processed the reply before', () => {
    const memo: EventBody = {
      type: 'memo',
      fields: { turn: 1, status: 'completed', reason: 'answer' },
    };
    const events = [...begin, replied, ...task, memo, ...task, steered, calledAgain];
    expect(texts(events)).toEqual(['go', 'first', 'also']);
    const view = push(events).view();
    expect(view.turns.map(({ turn }) => turn)).toEqual([1]);
    expect(view.state?.turn.number).toBe(2);
  });

  test('is not anticipated: an unprocessed reply is in the view only', () => {
    const projector = push([...begin, replied]);
    expect(projector.view().messages.map(({ text }) => text)).toEqual(['go', 'first']);
    expect(projector.view().turns).toEqual([]);
    expect(projector.processed().messages.map(({ text }) => text)).toEqual(['go']);
    expect(projector.processed().inFlight.size).toBe(1);
  });
});
