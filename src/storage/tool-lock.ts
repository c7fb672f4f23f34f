import { isObject, parseJson } from '../core/json.js';
import type { ObjectStore } from './object-stores.js';
import { StoreFault } from './worker-store.js';

/** The accepted form of a tool of an MCP server. */
export interface LockedTool {
  /** The server's own name of the tool. */
  readonly tool: string;
  /** SHA-256 in hex of the form. */
  readonly hash: string;
  /** When the form was recorded: Unix time in ms. */
  readonly at: number;
  /** Whether it was trusted when it was first used, or a person has accepted it. */
  readonly how: 'first_use' | 'accepted';
}

/** A form of a tool that is to be recorded. */
export interface ToolForm {
  readonly tool: string;
  readonly hash: string;
  /** The form as JSON text, to show later what has changed. */
  readonly form: string;
}

/**
 * Records which form of each tool of an MCP server is accepted. Workers that share the other stores
 * also share the lock, and so do later runs. A server is identified by a text of at most 60 plain
 * characters.
 */
export interface ToolLock {
  /** Returns the accepted forms of a server's tools; an empty list for an unknown server. */
  read(server: string): Promise<readonly LockedTool[]>;
  /**
   * Records forms, and returns what the lock holds afterwards. With `first_use`, a tool that has a
   * form keeps it, even if another worker records one at the same time.
   */
  write(
    server: string,
    forms: readonly ToolForm[],
    how: LockedTool['how'],
  ): Promise<readonly LockedTool[]>;
  /** Returns the text of a form, or null if the lock does not have it. */
  form(hash: string): Promise<string | null>;
}

/** Attempts to record forms while other workers do so, too. */
const ATTEMPTS = 20;
const NAME = /^(\d{6})\.json$/;

/**
 * Creates a `ToolLock` in an object store. Each change of a server's lock is a new object,
 * `servers/<server>/<number>.json`, and the highest number counts. No object ever changes, so two
 * workers cannot overwrite each other's change. Forms are stored as `forms/<hash>.json`. All methods
 * reject with a `StoreFault`.
 */
export function toolLockIn(objects: ObjectStore): ToolLock {
  const attempt = async <T>(kind: 'unreadable' | 'unwritable', act: () => Promise<T>): Promise<T> =>
    await act().catch((cause: unknown) => {
      const verb = kind === 'unwritable' ? 'written' : 'read';
      const why = cause instanceof Error ? cause.message : String(cause);
      const message = `the lock of MCP tools in ${objects.place} cannot be ${verb}: ${why}`;
      throw new StoreFault(message, { kind, cause });
    });
  const latest = async (server: string): Promise<Version> => {
    const names = await objects.list(`servers/${server}`);
    const number = Math.max(0, ...names.map((name) => Number(NAME.exec(name)?.[1] ?? 0)));
    if (number === 0) return { number, tools: [] };
    const bytes = await objects.get(nameOf(server, number));
    const tools = parseJson(bytes?.toString() ?? '');
    if (!Array.isArray(tools) || !tools.every(isLockedTool)) {
      throw new Error(
        `${nameOf(server, number)} is damaged; restore it from a backup, or delete it`,
      );
    }
    return { number, tools };
  };

  return {
    read: (server) => attempt('unreadable', async () => (await latest(server)).tools),
    form: (hash) =>
      attempt('unreadable', async () => {
        const bytes = await objects.get(`forms/${hash}.json`);
        return bytes === null ? null : bytes.toString();
      }),
    write: (server, forms, how) =>
      attempt('unwritable', async () => {
        for (let tries = 0; tries < ATTEMPTS; tries += 1) {
          const { number, tools } = await latest(server);
          const known = new Map(tools.map((each) => [each.tool, each]));
          const added = forms.filter(({ tool, hash }) =>
            how === 'first_use' ? !known.has(tool) : known.get(tool)?.hash !== hash,
          );
          if (added.length === 0) return tools;
          // A form is stored before anything refers to it.
          await Promise.all(
            added.map(({ hash, form }) => objects.put(`forms/${hash}.json`, Buffer.from(form))),
          );
          const at = Date.now();
          for (const { tool, hash } of added) known.set(tool, { tool, hash, at, how });
          const next = [...known.values()];
          const bytes = Buffer.from(JSON.stringify(next));
          if (await objects.create(nameOf(server, number + 1), bytes)) return next;
        }
        throw new Error('other workers change it all the time; try again');
      }),
  };
}

interface Version {
  /** 0 if the server has no lock yet. */
  readonly number: number;
  readonly tools: readonly LockedTool[];
}

function nameOf(server: string, number: number): string {
  return `servers/${server}/${String(number).padStart(6, '0')}.json`;
}

function isLockedTool(value: unknown): value is LockedTool {
  if (!isObject(value)) return false;
  const { tool, hash, at, how } = value;
  const isHow = how === 'first_use' || how === 'accepted';
  return isHow && typeof tool === 'string' && typeof hash === 'string' && typeof at === 'number';
}
