import { existsSync } from 'node:fs';
import { readFile, rename, writeFile } from 'node:fs/promises';
import type { Memory } from 'perdure';
import initSqlJs, { type Database } from 'sql.js';

const TABLE = 'create table if not exists turns (key text primary key, person text, said text)';

/**
 * Opens a SQLite memory that outlives the conversations. Each person, named in the run's
 * `context`, has a separate memory. Without a file, it is lost when the process ends. Only one
 * process may write to a file: with several workers, use a database server.
 */
export async function openMemory(file?: string): Promise<Memory> {
  const { Database: Sqlite } = await initSqlJs();
  const db =
    file !== undefined && existsSync(file) ? new Sqlite(await readFile(file)) : new Sqlite();
  db.run(TABLE);
  let written: Promise<void> = Promise.resolve();

  /** Replaces the file as a whole, so that a crash leaves either the old one or the new one. */
  const store = async (): Promise<void> => {
    if (file === undefined) return;
    await writeFile(`${file}.new`, db.export());
    await rename(`${file}.new`, file);
  };

  return {
    retrieve({ query, limit }, { context }) {
      const words = query.toLowerCase().match(/\w{4,}/g) ?? [];
      return saidBy(db, personIn(context))
        .filter(({ said }) => words.some((word) => said.toLowerCase().includes(word)))
        .slice(0, limit)
        .map(({ key, said }) => ({ id: key, text: said }));
    },
    async remember({ messages, outcome }, { context, idempotencyKey }) {
      const asked = messages.filter(({ role }) => role === 'user').map(({ text }) => text);
      const said = [...asked, outcome.answer ?? ''].join('\n');
      // A turn that already exists, because an earlier attempt was lost, is not changed.
      db.run('insert or ignore into turns values (?, ?, ?)', [
        idempotencyKey,
        personIn(context),
        said,
      ]);
      written = written.then(store, store);
      await written;
    },
  };
}

function saidBy(db: Database, person: string): readonly { key: string; said: string }[] {
  const [found] = db.exec('select key, said from turns where person = ? order by rowid desc', [
    person,
  ]);
  return (found?.values ?? []).map(([key, said]) => ({ key: String(key), said: String(said) }));
}

function personIn(context: unknown): string {
  const isNamed = typeof context === 'object' && context !== null && 'person' in context;
  return isNamed ? String(context.person) : '';
}
