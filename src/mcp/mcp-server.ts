import { z } from 'zod';
import type { Effect } from '../core/definition/tool-definition.js';
import { isObject } from '../core/text/json.js';
import { type Duration, isLoopback, toMs } from '../core/text/text.js';
import {
  type OptionSchemas,
  checkOptions,
  durableDuration,
  expectedHidden,
  timerDuration,
} from '../validation/check-options.js';

/** Options of every MCP server, whatever its transport. */
export interface McpCommonOptions {
  /** Letters, digits, `_`, and `-`, at most 32; the model sees its tools as `<name>__<tool>`. */
  readonly name: string;
  /** Tools that the agent gets, by the server's own names; default: all. */
  readonly allowTools?: readonly string[];
  /** Tools that the agent does not get, regardless of `allowTools`. Default: none. */
  readonly denyTools?: readonly string[];
  /**
   * The side effects of tools by the server's own names; the default is `once`. Hints of the server
   * can make an effect stricter, never looser.
   */
  readonly effects?: Readonly<Record<string, Effect>>;
  /** The time limit of one call, as a `Duration`; default '2 minutes'. */
  readonly timeout?: Duration;
  /** The time limit for the server to start and answer first, as a `Duration`; default '30 seconds'. */
  readonly connectTimeout?: Duration;
  /** If the server is unavailable: runs fail at their start (`strict`, default), or run without it. */
  readonly startup?: 'strict' | 'best_effort';
  /**
   * Which tools may be used without acceptance: those that were never seen before
   * (`first_use`, default), whose form is then recorded, or none (`accepted`). In either case, a
   * tool that has changed is not called until a person accepts the change.
   */
  readonly trust?: 'first_use' | 'accepted';
  /**
   * How long a question of the server waits for a person, as a `Duration`; default: indefinitely.
   * After that, the server gets `cancel` as its answer.
   */
  readonly expires?: Duration;
}

/** A server that the worker starts and uses over its standard streams. */
export interface StdioServerOptions extends McpCommonOptions {
  readonly transport: 'stdio';
  readonly command: string;
  /** Arguments of the command; default: none. */
  readonly args?: readonly string[];
  /**
   * Names of the worker's environment variables that the child gets. In addition to them, it gets
   * only PATH, HOME, LOGNAME, SHELL, TERM, and USER. Default: none.
   */
  readonly env?: readonly string[];
  /** Its working directory; default: the worker's. */
  readonly cwd?: string;
  /**
   * The version of the protocol to speak with it. Default: an older one, unless it speaks only this
   * one. Only a server of this version can ask people before its tools act.
   */
  readonly protocol?: '2026-07-28';
}

/** A server that runs elsewhere, over streamable HTTP. */
export interface HttpServerOptions extends McpCommonOptions {
  readonly transport: 'http';
  readonly url: string;
  /** The worker's environment variable that holds the bearer token. Default: no token. */
  readonly authEnv?: string;
  /** Further headers, each by the environment variable that holds its value. Default: none. */
  readonly headersEnv?: Readonly<Record<string, string>>;
}

/** What an author passes to `mcpServer`. */
export type McpServerOptions = StdioServerOptions | HttpServerOptions;

const VARIABLE = /^[A-Za-z_]\w*$/;
const HEADER = /^[\w-]+$/;

const text = z.string().min(1);

const common = {
  // Two underscores separate server and tool in the names that the model sees.
  name: z
    .string()
    .regex(
      /^(?!_)(?!.*__)[\w-]{1,32}(?<!_)$/,
      'expected 1 to 32 letters, digits, "-" and single "_" between them',
    ),
  allowTools: z.array(text).optional(),
  denyTools: z.array(text).optional(),
  effects: z.record(z.string(), z.enum(['read', 'keyed', 'once'])).optional(),
  timeout: timerDuration.optional(),
  connectTimeout: timerDuration.optional(),
  startup: z.enum(['strict', 'best_effort']).optional(),
  trust: z.enum(['first_use', 'accepted']).optional(),
  expires: durableDuration.optional(),
};

const stdioOptions = z.strictObject({
  ...common,
  transport: z.literal('stdio'),
  command: z.string().min(1, 'expected a program; its arguments go into `args`'),
  args: z.array(text).optional(),
  env: expectedHidden(
    'a list of names of environment variables; write for example ["GITHUB_TOKEN"]',
    (value) => Array.isArray(value) && value.every(isVariable),
  ).optional(),
  cwd: text.optional(),
  protocol: z.literal('2026-07-28').optional(),
} satisfies OptionSchemas<StdioServerOptions>);

const httpOptions = z
  .strictObject({
    ...common,
    transport: z.literal('http'),
    url: expectedHidden('an http(s) address; write for example "https://host/mcp"', isHttpUrl),
    authEnv: expectedHidden(
      'the name of an environment variable that holds the token, not the token',
      isVariable,
    ).optional(),
    headersEnv: expectedHidden(
      'headers with the names of environment variables; write for example { "X-Api-Key": "MY_KEY" }',
      isHeaders,
    ).optional(),
  } satisfies OptionSchemas<HttpServerOptions>)
  .superRefine(({ url, authEnv, headersEnv }, context) => {
    const message = urlFault(
      new URL(String(url)),
      authEnv !== undefined || headersEnv !== undefined,
    );
    if (message === undefined) return;
    context.addIssue({ code: 'custom', path: ['url'], message, params: { secret: true } });
  });

const serverOptions = z.discriminatedUnion('transport', [stdioOptions, httpOptions], {
  error: (issue) =>
    issue.code === 'invalid_union'
      ? 'expected "stdio" (with `command`) or "http" (with `url`)'
      : undefined,
});

/** Throws an `InputError` with a line for each fault of a server's definition. No value of a secret is in it. */
function assertServerOptions(options: unknown): void {
  checkOptions('MCP server', { schema: serverOptions, options });
}

function urlFault(
  { username, password, protocol, hostname }: URL,
  hasSecret: boolean,
): string | undefined {
  if (username !== '' || password !== '') {
    return 'expected an address without a name or password; give the token by `authEnv`, the name of an environment variable';
  }
  if (!hasSecret || protocol === 'https:' || isLoopback(hostname)) return undefined;
  return 'expected https, because keys are not sent over plain http to another machine';
}

function isHttpUrl(value: unknown): boolean {
  return typeof value === 'string' && URL.canParse(value) && /^https?:/.test(value);
}

function isHeaders(value: unknown): boolean {
  return (
    isObject(value) &&
    Object.entries(value).every(([header, name]) => HEADER.test(header) && isVariable(name))
  );
}

function isVariable(value: unknown): boolean {
  return typeof value === 'string' && VARIABLE.test(value);
}

type Filled =
  | 'allowTools'
  | 'denyTools'
  | 'effects'
  | 'timeout'
  | 'connectTimeout'
  | 'startup'
  | 'trust'
  | 'expires'
  | 'name';

interface Policy {
  readonly name: string;
  /** Null: all. */
  readonly allowTools: readonly string[] | null;
  readonly denyTools: readonly string[];
  readonly effects: Readonly<Record<string, Effect>>;
  readonly timeoutMs: number;
  readonly connectMs: number;
  readonly startup: 'strict' | 'best_effort';
  readonly trust: 'first_use' | 'accepted';
  /** Absent: a question of the server waits indefinitely. */
  readonly expiresMs?: number;
}

/**
 * A server made by `mcpServer`: checked, with defaults filled in. It contains names of secrets,
 * never values.
 */
export type McpServer = Policy &
  (Omit<StdioServerOptions, Filled> | Omit<HttpServerOptions, Filled>);

const TIMEOUT_MS = 120_000;
const CONNECT_MS = 30_000;

/**
 * Defines an MCP server whose tools an agent gets. It starts nothing: workers connect when a run needs the
 * server. Throws an `InputError` if the definition cannot work, with a line for each fault.
 *
 * @example
 * ```ts
 * import { defineAgent } from 'perdure';
 * import { mcpServer } from 'perdure/tools';
 *
 * const files = mcpServer({
 *   name: 'files',
 *   transport: 'stdio',
 *   command: 'npx',
 *   args: ['@modelcontextprotocol/server-filesystem', '.'],
 *   effects: { read_file: 'read', list_directory: 'read' },
 * });
 *
 * export const reader = defineAgent({ name: 'reader', instructions: 'Answer.', mcp: [files] });
 * ```
 */
export function mcpServer(options: McpServerOptions): McpServer {
  assertServerOptions(options);
  const { allowTools, denyTools, effects, timeout, ...rest } = options;
  const { connectTimeout, startup, trust, expires, ...place } = rest;
  return Object.freeze({
    ...place,
    allowTools: allowTools ?? null,
    denyTools: denyTools ?? [],
    effects: effects ?? {},
    timeoutMs: toMs(timeout ?? TIMEOUT_MS),
    connectMs: toMs(connectTimeout ?? CONNECT_MS),
    startup: startup ?? 'strict',
    trust: trust ?? 'first_use',
    ...(expires !== undefined && { expiresMs: toMs(expires) }),
  });
}
