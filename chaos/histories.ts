import type { Client, WorkflowHandle } from '@temporalio/client';

export type History = Awaited<ReturnType<WorkflowHandle['fetchHistory']>>;
export type HistoryEvent = NonNullable<History['events']>[number];

/** The histories of all segments of a run, oldest first. */
export async function historiesOf(client: Client, id: string): Promise<readonly History[]> {
  const histories: History[] = [];
  let runId: string | null | undefined = (await client.workflow.getHandle(id).describe()).runId;
  while (runId !== undefined && runId !== null && runId !== '') {
    const history: History = await client.workflow.getHandle(id, runId).fetchHistory();
    histories.unshift(history);
    runId =
      history.events?.[0]?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId ?? '';
  }
  return histories;
}

/** Unix time in ms at which the server recorded an event. */
export function timeOf({ eventTime }: HistoryEvent): number {
  return Number(eventTime?.seconds ?? 0) * 1_000 + (eventTime?.nanos ?? 0) / 1e6;
}

/** Everything that a history holds, payloads decoded, as one text to search in. */
export function plainText(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    part instanceof Uint8Array || isBuffer(part) ? textOf(part) : part,
  );
}

function isBuffer(value: unknown): value is { data: readonly number[] } {
  return typeof value === 'object' && value !== null && 'type' in value && value.type === 'Buffer';
}

function textOf(value: Uint8Array | { data: readonly number[] }): string {
  return Buffer.from(value instanceof Uint8Array ? value : value.data).toString('utf8');
}
