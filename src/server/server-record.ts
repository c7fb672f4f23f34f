import { randomUUID } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import { PRIVATE } from '../storage/private-files.js';

const port = z.int().min(1).max(65535);

const schema = z.object({
  /** Null if the server was stopped. */
  pid: z.int().positive().nullable(),
  port,
  uiPort: port,
  /** The version of the server that last opened the database; null if unknown. */
  version: z.string().nullable(),
  /** The version of the server that created the database; null if unknown. */
  createdBy: z.string().nullable(),
  /** An ISO 8601 time; null for a server that was found running without a record. */
  startedAt: z.string().nullable(),
});

/** The content of `PERDURE_HOME/server.json` about the embedded server, running or not. */
export type ServerRecord = Readonly<z.infer<typeof schema>>;

/** Returns null if there is no readable record. A record may be outdated. */
export async function readRecord(file: string): Promise<ServerRecord | null> {
  const text = await readFile(file, 'utf8').catch(() => null);
  if (text === null) return null;
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

/** Replaces the record in one step, so no reader sees a partial one. */
export async function writeRecord(file: string, record: ServerRecord): Promise<void> {
  const draft = `${file}.${randomUUID()}`;
  await writeFile(draft, `${JSON.stringify(record, null, 2)}\n`, { mode: PRIVATE.file });
  await rename(draft, file);
}
