import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startService, type Service } from '../examples/assistant/service.js';
import type { RunStatus } from '../src/core/state/status.js';
import { askUpdate, closeUpdate } from '../src/workflows/messages/definitions.js';
import { startExample, type Example } from './support/example.js';

// The example assistant with a real model, configured as in real-model.live.ts. Whatever the model
// does, each turn has to end, and the state of the service has to match what the turns report.

const baseUrl = process.env['OPENAI_BASE_URL'] ?? '';
const model = process.env['PERDURE_MODEL'] ?? 'any';
const MESSAGES = [
  'Add an event "dentist" on Tuesday, 2026-11-24, at 12:00.',
  'Delete the dentist, and add an event "lunch" at 13:00 on the same day.',
  'What is on?',
  'No, I meant: only delete the event e1.',
  'Remind me to call Ann.',
];

let assistant: Example;
let service: Service;
beforeAll(async () => {
  if (baseUrl === '') throw new Error('OPENAI_BASE_URL: name a server');
  service = await startService();
  process.env['ASSISTANT_SERVICE'] = service.url;
  assistant = await startExample('assistant', { OPENAI_BASE_URL: baseUrl, PERDURE_MODEL: model });
});
afterAll(async () => {
  await assistant?.close();
  await service?.close();
  delete process.env['ASSISTANT_SERVICE'];
});

interface Action {
  readonly id: string;
  readonly tool: string;
}

test('a conversation of five turns does what it reports, each action once, and deletes only after approval', async () => {
  const limits = { steps: 12 };
  const handle = await assistant.rig.start({
    agent: 'assistant',
    open: true,
    message: MESSAGES[0] ?? '',
    limits,
  });
  const done = new Map<string, number>();
  let confirmed = 0;
  for (const [index, message] of MESSAGES.entries()) {
    if (index > 0) await handle.executeUpdate(askUpdate, { args: [{ message }] });
    for (;;) {
      const { status, pending, outcome } = await idleStatus();
      if (status === 'waiting_decision') {
        // A part of it, or all: the part that is named first.
        const [first] = /\ba\d+\b/.exec(pending[0]?.shown ?? '') ?? ['yes'];
        await handle.executeUpdate(askUpdate, { args: [{ message: index % 2 ? first : 'yes' }] });
        confirmed += 1;
        continue;
      }
      console.log(index + 1, message, '→', outcome?.status, outcome?.reason, outcome?.answer);
      const { plan, results = {} } = (outcome?.output ?? {}) as {
        plan?: { actions: readonly Action[] };
        results?: Readonly<Record<string, { ok: boolean }>>;
      };
      for (const { id, tool } of plan?.actions ?? []) {
        if (results[id]?.ok === true) done.set(tool, (done.get(tool) ?? 0) + 1);
      }
      break;
    }

    async function idleStatus(): Promise<RunStatus> {
      return await vi.waitFor(
        async () => {
          const found = await handle.query<RunStatus>('status');
          expect(found.status).toMatch(/^waiting_(message|decision)$/);
          expect(found.turn).toBe(index + 1);
          return found;
        },
        { timeout: 300_000, interval: 200 },
      );
    }
  }
  const count = async (table: string): Promise<number> => {
    const response = await fetch(`${service.url}/${table}`);
    return ((await response.json()) as readonly unknown[]).length;
  };
  const deleted = done.get('delete_calendar_event') ?? 0;
  console.log(Object.fromEntries(done), { confirmed });
  expect(await count('tasks')).toBe(done.get('create_task') ?? 0);
  expect(await count('events')).toBe((done.get('add_calendar_event') ?? 0) - deleted);
  if (deleted > 0) expect(confirmed).toBeGreaterThan(0);
  await handle.executeUpdate(closeUpdate, { args: [{}] });
  await assistant.rig.end(handle);
});
