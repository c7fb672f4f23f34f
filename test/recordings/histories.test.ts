import { readFile, readdir } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { decodeEvent } from '../../src/history/decode-event.js';
import { historyFromJson } from '../../src/history/history-event.js';
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
