import { readFile, readdir } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { decodeEvent } from '../../src/history/decode-event.js';
import { type HistoryEvent, historyFromJson } from '../../src/history/history-event.js';
import { project } from '../../src/history/projection.js';
import { recordEvents } from '../../src/recordings/record-histories.js';
import { blobsIn, createRecording } from '../../src/recordings/recording.js';
import { parseRecording } from '../../src/recordings/parse-recording.js';

const FOLDER = new URL('../histories/', import.meta.url);
const FILES = (await readdir(FOLDER)).filter((name) => name.endsWith('.json'));

test.each(FILES)('%s is recorded, and its recording is read', async (name) => {
  const json = JSON.parse(await readFile(new URL(name, FOLDER), 'utf8')) as { events: unknown[] };
  const events = (historyFromJson(json).events ?? []).map(decodeEvent);
  const view = project(events);
  const run = recordEvents({ id: 'run', segments: [events] });
  if (view.state === null) return expect(run).toBeNull();
  expect(run?.messages).toEqual(view.messages);
  expect(run?.outcome).toEqual(view.outcome);
  const recording = JSON.parse(JSON.stringify(createRecording(run === null ? [] : [run], {})));
  // The histories are without their large texts.
  if (blobsIn(recording).size > 0) {
    expect(() => parseRecording(recording)).toThrow('expected a text in blobs');
  } else expect(parseRecording(recording)).toEqual(recording);
});

test('the time of a reply counts from the start of its attempt, not from the wait for a worker', async () => {
  const file = new URL('agent-refreshed.json', FOLDER);
  const json = JSON.parse(await readFile(file, 'utf8')) as { events: unknown[] };
  const events = (historyFromJson(json).events ?? []).map(decodeEvent);
  const isCall = (event: HistoryEvent): boolean =>
    event.type === 'scheduled' && event.activity === 'callModel';
  const index = events.findIndex(isCall);
  const { id, at } = events[index] as HistoryEvent;
  // The worker took the call after 25 s, and the model replied after 700 ms.
  const timed = events.map((event): HistoryEvent => {
    if (event.type === 'attempted' && event.scheduled === id) return { ...event, at: at + 25_000 };
    if (event.type === 'completed' && event.scheduled === id) return { ...event, at: at + 25_700 };
    return event;
  });
  const run = recordEvents({ id: 'run', segments: [timed] });
  const replies = (run?.facts ?? []).flatMap((fact) =>
    fact.type === 'reply' ? [fact.tookMs] : [],
  );
  expect(replies[0]).toBe(700);
});
