import { z } from 'zod';
import type { Agent } from './agents/agent.js';
import { givenAgent } from './agents/given-agent.js';
import { assertRuleNames, assertRules, requestOptions } from './agents/options.js';
import { withCalled } from './agents/agent-definition.js';
import type { RequestOptions } from './agents/agent-parts.js';
import { InputError } from './core/errors.js';
import { checkTenant } from './core/input/input.js';
import type { SharedBudget } from './core/rules/budget.js';
import { type Duration, show } from './core/text/text.js';
import { type EncryptionOptions, encryptionProblem } from './encryption/keyring.js';
import { type IdHashing, hashedWith } from './temporal/stored-ids.js';
import { meantModel } from './models/known-models.js';
import { type ModelEntry, assertModelEntry } from './models/model-entry.js';
import { secretNamesProblem } from './secrets/known.js';
import {
  checkOptions,
  expected,
  uniquelyNamed,
  type OptionSchemas,
  timerDuration,
} from './validation/check-options.js';
import { nearHint } from './validation/near-names.js';

/**
 * The rights of a principal about the runs of an agent. `start`: start runs, and read, message, and
 * cancel those that it has started. The others are about every run of the agent: `read` it, `talk`
 * to it, `decide` about its requests, and `control` it (cancel, pause, resume, close, limits, and
 * the `context` of runs and messages, which tools trust).
 */
export const RIGHTS = ['start', 'talk', 'read', 'decide', 'control'] as const;
/** One of the rights of a principal about the runs of an agent; see `PrincipalOptions`. */
export type Right = (typeof RIGHTS)[number];

/** Rights by the name of an agent, or by a glob: `*` is any characters. `all`: every right. */
export type AgentRights = Readonly<Record<string, readonly Right[] | 'all'>>;

/** What a principal is, and what it may do. */
export interface PrincipalOptions {
  /** The groups that it is in, in addition to those of its OIDC token. Default: none. */
  readonly groups?: readonly string[];
  /**
   * Its rights; with `tenant`, about the runs of this tenant only. Default: none but those of its
   * groups.
   */
  readonly rights?: AgentRights;
  /**
   * The tenant of all runs that it starts. It sees no run of another tenant, and none without one.
   * Default: any.
   */
  readonly tenant?: string;
}

/** How OIDC tokens become principals. Tokens are verified by the keys of the issuer (JWKS). */
export interface OidcOptions {
  /** The `iss` of the tokens, such as `https://login.example.com`. */
  readonly issuer: string;
  /** The `aud` of the tokens. */
  readonly audience: string;
  /** Where the keys are; default: from the issuer's `/.well-known/openid-configuration`. */
  readonly jwksUrl?: string;
  /** The claim that names the principal; default `sub`. */
  readonly nameClaim?: string;
  /** The claim with its groups; default `groups`. */
  readonly groupsClaim?: string;
}

/** What one principal may use of a server, per process. */
export interface ServeLimits {
  /** Requests in a minute; default 600. */
  readonly requestsPerMinute: number;
  /** Streams open at once, and requests that wait for a result; default 100. */
  readonly streams: number;
  /** Bytes of a request's body; default 1 MiB. */
  readonly bodyBytes: number;
  /** How long a reader of a stream may take to read what was sent; default '60 seconds'. */
  readonly readTimeout: Duration;
}

/** Who may use the HTTP server, and for what. */
export interface ServeOptions {
  /**
   * The environment variable with the key of each principal, such as `{ web: 'WEB_KEY' }`. The keys
   * of PERDURE_SERVE_KEYS (`name:key,…`) also count. Default: none.
   */
  readonly keys?: Readonly<Record<string, string>>;
  /** The issuer whose tokens name principals; default: only keys do. */
  readonly oidc?: OidcOptions;
  /**
   * Rights by the name of the principal; `*` is every principal. Default: none; without `groups` as
   * well, every principal has all rights.
   */
  readonly principals?: Readonly<Record<string, PrincipalOptions>>;
  /** Rights by the name of a group, and its tenant. Default: none. */
  readonly groups?: Readonly<Record<string, Pick<PrincipalOptions, 'rights' | 'tenant'>>>;
  /**
   * Origins of web pages that may use the server, such as `https://app.example.com`. Default: only
   * the server's own.
   */
  readonly origins?: readonly string[];
  /** What each principal may use; see `ServeLimits` for the defaults. */
  readonly limits?: Partial<ServeLimits>;
  /** What clients of MCP may do; default: what their principal may, except to decide. */
  readonly mcp?: ServeMcpOptions;
}

/** What clients of the MCP server at `/mcp` may do, in addition to the rights of their principal. */
export interface ServeMcpOptions {
  /**
   * Offers tools that list requests and decide about them, to principals with the right `decide`. The
   * client is a model, so this lets a model approve what another one wants to do. Default: false.
   */
  readonly decide?: boolean;
}

/** A budget that runs share: of a tenant or a tag, in money or tokens. At least one of each is given. */
export interface BudgetOptions {
  /** The `tenant` of the runs. Required without `tag`, and refused with it. */
  readonly tenant?: string;
  /** One of the `tags` of the runs; agents that they call count too. Required without `tenant`. */
  readonly tag?: string;
  /** A day in UTC. */
  readonly per: 'day';
  /**
   * US dollars. Each model that is called needs a known price. Required without `tokens`. Default:
   * any amount.
   */
  readonly costUsd?: number;
  /** Tokens of prompts and replies together. Required without `costUsd`. Default: any number. */
  readonly tokens?: number;
}

/** The default export of `perdure.config.ts`. */
export interface Config extends RequestOptions {
  /** The agents that workers with this configuration serve; each name is unique. */
  readonly agents: readonly Agent[];
  /**
   * Models by the names that agents use; other names are passed to the OpenAI adapter unchanged.
   * Default: none.
   */
  readonly models?: Readonly<Record<string, ModelEntry>>;
  /** The Temporal task queue; default: PERDURE_TASK_QUEUE, else `perdure`. */
  readonly taskQueue?: string;
  /**
   * `host:port` of the Temporal server; default: TEMPORAL_ADDRESS, else the profile's, else the
   * running server of PERDURE_HOME, else this user's at 127.0.0.1:7233.
   */
  readonly address?: string;
  /** The Temporal namespace; default: TEMPORAL_NAMESPACE, else the profile's, else `default`. */
  readonly namespace?: string;
  /**
   * Names of further environment variables whose values must never leave a worker. Variables whose
   * names look secret (a segment such as KEY or TOKEN) need not be listed. Default: none.
   */
  readonly secrets?: readonly string[];
  /**
   * What all runs of a tenant, or with a tag, may spend together in a day. A run that finds no room is
   * blocked until the next day. Every worker of the namespace needs the same. Default: none.
   */
  readonly budgets?: readonly BudgetOptions[];
  /**
   * Who may use the HTTP server (`perdure serve`), and for what. Default: the holders of the keys
   * in PERDURE_SERVE_KEYS, for everything; without keys, this machine.
   */
  readonly serve?: ServeOptions;
  /**
   * Keys with which everything that runs record is encrypted; default: those of
   * PERDURE_ENCRYPTION_KEYS, else none.
   */
  readonly encryption?: EncryptionOptions;
}

const names = z.array(z.string().min(1));
const variable = expected<string>(
  'the name of an environment variable that holds the key, not the key',
  (value) => typeof value === 'string' && /^[A-Za-z_]\w*$/.test(value),
);
const url = expected<string>(
  'an http(s) address',
  (value) => typeof value === 'string' && URL.canParse(value) && /^https?:/.test(value),
);
const tenantName = expected<string>(
  'a tenant of 1 to 64 bytes',
  (value) => typeof value === 'string' && checkTenant(value) === null,
);
const rights = z.record(z.string(), z.union([z.literal('all'), z.array(z.enum(RIGHTS))]));
const count = z.int().min(1);

/** The schema of `serve`, also for a server without a configuration. */
export const serveOptions = z.strictObject({
  keys: z.record(z.string(), variable).optional(),
  oidc: z
    .strictObject({
      issuer: url,
      audience: z.string().min(1),
      jwksUrl: url.optional(),
      nameClaim: z.string().min(1).optional(),
      groupsClaim: z.string().min(1).optional(),
    } satisfies OptionSchemas<OidcOptions>)
    .optional(),
  principals: z
    .record(
      z.string(),
      z.strictObject({
        groups: names.optional(),
        rights: rights.optional(),
        tenant: tenantName.optional(),
      } satisfies OptionSchemas<PrincipalOptions>),
    )
    .optional(),
  groups: z
    .record(
      z.string(),
      z.strictObject({ rights: rights.optional(), tenant: tenantName.optional() }),
    )
    .optional(),
  origins: z
    .array(
      expected<string>(
        'an origin such as "https://app.example.com", without a path',
        (value) =>
          typeof value === 'string' && URL.canParse(value) && new URL(value).origin === value,
      ),
    )
    .optional(),
  limits: z
    .strictObject({
      requestsPerMinute: count.optional(),
      streams: count.optional(),
      bodyBytes: count.optional(),
      readTimeout: timerDuration.optional(),
    } satisfies OptionSchemas<ServeLimits>)
    .optional(),
  mcp: z
    .strictObject({ decide: z.boolean().optional() } satisfies OptionSchemas<ServeMcpOptions>)
    .optional(),
} satisfies OptionSchemas<ServeOptions>);

const positive = z.number('expected a number above 0').positive('expected a number above 0');
const named = z.string('expected a text').min(1, 'expected a text, got an empty one');
const budgetOptions = z
  .strictObject({
    tenant: named.optional(),
    tag: named.optional(),
    per: z.literal('day'),
    costUsd: positive.optional(),
    tokens: positive.optional(),
  } satisfies OptionSchemas<BudgetOptions>)
  .refine(
    ({ tenant, tag }) => (tenant === undefined) !== (tag === undefined),
    "expected either `tenant` or `tag`, such as { tenant: 'acme', per: 'day', costUsd: 5 }",
  )
  .refine(
    ({ costUsd, tokens }) => costUsd !== undefined || tokens !== undefined,
    "expected `costUsd`, `tokens`, or both, such as { tenant: 'acme', per: 'day', costUsd: 5 }",
  );

/** Returns the budgets of a configuration, each with one unit. `hashing`: how the server gets the names of tenants. */
export function budgetsOf(
  { budgets = [] }: Pick<Config, 'budgets'>,
  hashing: IdHashing | null = null,
): readonly SharedBudget[] {
  return budgets.flatMap(({ tenant, tag = '', costUsd, tokens }) => {
    const of = tenant === undefined ? 'tag' : 'tenant';
    const stored = tenant === undefined ? tag : hashedWith(hashing, 'tenant', tenant);
    const name = tenant ?? tag;
    const whose = { of, name, ...(stored !== name && { stored }) } as const;
    return [
      ...(costUsd === undefined ? [] : [{ ...whose, unit: 'costUsd', limit: costUsd } as const]),
      ...(tokens === undefined ? [] : [{ ...whose, unit: 'tokens', limit: tokens } as const]),
    ];
  });
}

/** Throws an `InputError` for two budgets of the same runs in the same unit. */
function assertOneBudgetEach(budgets: readonly SharedBudget[]): void {
  for (const [index, { of, name, unit }] of budgets.entries()) {
    const isFirst =
      budgets.findIndex((one) => one.of === of && one.name === name && one.unit === unit) === index;
    if (isFirst) continue;
    throw new InputError(
      `config: budgets: expected one ${unit} of ${of} ${show(name)}, got two; remove one of them`,
    );
  }
}

const configOptions = z.strictObject({
  agents: uniquelyNamed(givenAgent),
  models: z.looseObject({}).optional(),
  taskQueue: z
    .string()
    .refine(
      (name) => name.trim() !== '',
      'expected the name of a task queue; omit it for the default one',
    )
    .optional(),
  address: z.string().optional(),
  namespace: z.string().optional(),
  secrets: z.unknown().optional(),
  budgets: z.array(budgetOptions).optional(),
  serve: serveOptions.optional(),
  encryption: z.unknown().optional(),
  ...requestOptions,
} satisfies OptionSchemas<Config>);

/**
 * Checks a configuration and returns it frozen. Throws an `InputError` with a line
 * `field: expected X, got Y; fix` for each fault.
 *
 * @example
 * ```ts
 * // perdure.config.ts
 * import { defineAgent, defineConfig } from 'perdure';
 *
 * const clerk = defineAgent({ name: 'clerk', instructions: 'Answer.', model: 'local' });
 *
 * export default defineConfig({
 *   agents: [clerk],
 *   models: { local: { baseUrl: 'http://127.0.0.1:11434/v1', model: 'qwen3' } },
 *   taskQueue: 'orders',
 *   rules: [{ tool: 'delete_*', then: 'ask' }],
 * });
 * ```
 */
export function defineConfig(config: Config): Config {
  checkOptions('config', { schema: configOptions, options: config });
  const problem = secretNamesProblem(config.secrets, 'config');
  if (problem !== null) throw new InputError(problem);
  const keys = config.encryption === undefined ? null : encryptionProblem(config.encryption);
  if (keys !== null) throw new InputError(keys);
  assertRules(config.rules, 'config');
  assertOneBudgetEach(budgetsOf(config));
  const agents = withCalled(config.agents);
  assertRuleNames(config.rules, agents, 'config');
  for (const [name, entry] of Object.entries(config.models ?? {})) assertModelEntry(name, entry);
  assertModelNames(agents, Object.keys(config.models ?? {}));
  assertCalledNames(agents);
  return Object.freeze({ ...config });
}

/** Throws an `InputError` for a node of a graph that names an agent which the configuration lacks. */
function assertCalledNames(agents: readonly Agent[]): void {
  const known = agents.map(({ name }) => name);
  for (const { name: graph, graph: drawn } of agents) {
    for (const node of drawn?.definition.nodes ?? []) {
      const body = node.kind === 'each' ? node.body : node;
      const called =
        body.kind === 'agent' ? body.agent : body.kind === 'graph' ? body.graph : undefined;
      if (called === undefined || known.includes(called)) continue;
      const others = known.filter((name) => name !== graph).map(show);
      throw new InputError(
        `config: graph ${show(graph)}: node ${show(node.name)}: ${body.kind}: expected an agent of the configuration, got ` +
          `${show(called)}${nearHint(show(called), others)}; correct the name, or add the agent to \`agents\``,
      );
    }
  }
}

/** Throws an `InputError` for a model with a misspelled name. */
function assertModelNames(agents: readonly Agent[], entries: readonly string[]): void {
  for (const { name, model, fallbacks = [] } of agents) {
    const called = [
      ...(model === null ? [] : [['model', model] as const]),
      ...fallbacks.map((fallback, at) => [`model[${at + 1}]`, fallback] as const),
    ];
    for (const [field, given] of called) {
      const meant = meantModel(given, entries);
      if (meant === undefined) continue;
      const wanted = meant === 'demo' ? 'a model' : 'an entry of `models`';
      throw new InputError(
        `config: agent ${show(name)}: ${field}: expected ${wanted}, got ${show(given)} (did you mean ` +
          `${show(meant)}); correct it, or add an entry ${show(given)}: {} for a model with this name`,
      );
    }
  }
}
