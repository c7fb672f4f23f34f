// A small service for calendar, tasks, and mail over SQLite. A write under the same key happens once.
//   node --import tsx examples/assistant/service.ts assistant.sqlite
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import initSqlJs, { type Database } from 'sql.js';

const PORT = 8899;

const TABLES = `
  create table if not exists events (id text primary key, title text, start text);
  create table if not exists tasks (id text primary key, title text, due text);
  create table if not exists mails (id text primary key, sender text, subject text, unread integer);
  create table if not exists written (key text primary key, result text);
`;

/** The columns of each table that a request may write. */
const COLUMNS: ReadonlyMap<string, readonly string[]> = new Map([
  ['events', ['title', 'start']],
  ['tasks', ['title', 'due']],
  ['mails', ['sender', 'subject', 'unread']],
]);

export interface Service {
  readonly url: string;
  close(): Promise<void>;
}

/** Starts the service. Without a file, its data is lost when the process ends. */
export async function startService({
  file,
  port = 0,
}: {
  readonly file?: string;
  readonly port?: number;
} = {}): Promise<Service> {
  const { Database: Sqlite } = await initSqlJs();
  const known = file !== undefined && existsSync(file);
  const db = known ? new Sqlite(await readFile(file)) : new Sqlite();
  db.run(TABLES);
  const server = createServer((request, response) => {
    const answer = async (): Promise<void> => {
      const result = await handle(db, request);
      if (file !== undefined && request.method !== 'GET') await writeFile(file, db.export());
      response.writeHead(result === null ? 404 : 200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(result ?? { error: 'not found' }));
    };
    answer().catch((error: unknown) => response.writeHead(400).end(String(error)));
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it listens on a port
  const address = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${address.port}`,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

async function handle(db: Database, request: IncomingMessage): Promise<unknown> {
  const [, table = '', id] = (request.url ?? '').split('/');
  const columns = COLUMNS.get(table);
  if (columns === undefined) return null;
  if (request.method === 'GET') return rows(db, `select * from ${table} order by id`);
  const key = String(request.headers['idempotency-key'] ?? '');
  const [before] = rows(db, 'select result from written where key = ?', [key]);
  if (before !== undefined) return JSON.parse(String(before['result']));
  const result =
    request.method === 'DELETE'
      ? remove(db, table, id ?? '')
      : insert(db, { table, columns, given: await readJson(request) });
  if (result !== null) db.run('insert into written values (?, ?)', [key, JSON.stringify(result)]);
  return result;
}

type Row = Readonly<Record<string, string | number | null>>;

function rows(db: Database, sql: string, values: (string | number | null)[] = []): readonly Row[] {
  const statement = db.prepare(sql, values);
  const found: Row[] = [];
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the tables have no blobs
  while (statement.step()) found.push(statement.getAsObject() as Row);
  statement.free();
  return found;
}

interface Insertion {
  readonly table: string;
  readonly columns: readonly string[];
  readonly given: Row;
}

function insert(db: Database, { table, columns, given }: Insertion): Row {
  const [last] = rows(
    db,
    `select count(*) as n, max(cast(substr(id, 2) as int)) as top from ${table}`,
  );
  const id = `${table.charAt(0)}${Number(last?.['top'] ?? 0) + 1}`;
  const values = columns.map((column) => given[column] ?? null);
  const places = [id, ...values].map(() => '?').join(', ');
  db.run(`insert into ${table} values (${places})`, [id, ...values]);
  return { id, ...given };
}

function remove(db: Database, table: string, id: string): Row | null {
  const [found] = rows(db, `select * from ${table} where id = ?`, [id]);
  if (found === undefined) return null;
  db.run(`delete from ${table} where id = ?`, [id]);
  return found;
}

async function readJson(request: IncomingMessage): Promise<Row> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk));
  const row: Row = JSON.parse(Buffer.concat(chunks).toString());
  return row;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { url } = await startService({ file: process.argv[2] ?? 'assistant.sqlite', port: PORT });
  console.log(`calendar, tasks, and mail at ${url}`);
}
