import { randomUUID } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import { PRIVATE } from '../storage/private-files.js';

const port = z.int().min(1).max(65535);

const schema = z.object({
  /** Null when it was stopped. */
  pid: z.int().positive().nullable(),
  port,
  uiPort: port,
  /** Version of the server that opened the database last; null when it did not say. */
  version: z.string().nullable(),
  /** Version of the server that made the database; null when that was forgotten. */
  createdBy: z.string().nullable(),
  /** ISO 8601; null for a server that was found running without a record. */
  startedAt: z.string().nullable(),
});

/** What `PERDURE_HOME/server.json` remembers of the embedded server, running or not. */
export type ServerRecord = Readonly<z.infer<typeof schema>>;

/** Null when there is none, or none that can be read: the record is a memory, not the truth. */
export async function readRecord(file: string): Promise<ServerRecord | null> {
  const text = await readFile(file, 'utf8').catch(() => null);
  if (text === null) return null;
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

/** Replaces the record in one step, so that no reader ever sees half of it. */
export async function writeRecord(file: string, record: ServerRecord): Promise<void> {
  const draft = `${file}.${randomUUID()}`;
  await writeFile(draft, `${JSON.stringify(record, null, 2)}\n`, { mode: PRIVATE.file });
  await rename(draft, file);
}
