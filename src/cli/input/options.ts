import { Option, type Command as Entry } from 'commander';
import { RUN_STATUSES } from '../../core/state/status.js';
import { DECISION_FIELDS, DECISION_KINDS } from '../../core/transcript/request.js';
import {
  collectArguments,
  collectAmounts,
  collectLimits,
  collectSettings,
  collectValues,
  parseDurationOption,
  parseArgumentsOption,
  parseJsonOption,
  parseNodeVisit,
  parseNumber,
  SCHEDULE_OPTIONS,
} from './option-parsers.js';

/** An option as commander declares it. */
interface Declared {
  readonly flags: string;
  /** The help text: the same at every command. */
  readonly text: string;
  readonly parse?: (text: string, before: never) => unknown;
  readonly choices?: readonly string[];
  readonly isRequired?: true;
}

/**
 * Every option of every command. A name has one meaning, one type, and one help text wherever it
 * occurs, so commands declare their options only from this table.
 */
export const OPTIONS = {
  // Of every command.
  config: {
    flags: '--config <file>',
    text: 'default: perdure.config.ts, else the built-in agent `files`',
  },
  noConfig: { flags: '--no-config', text: 'load no file; use only the built-in agent `files`' },
  write: { flags: '--write', text: 'let `files` write documents and data' },
  allowWrite: {
    flags: '--allow-write <glob>',
    text: 'let `files` also write code, settings, and other files',
    parse: collectValues,
  },
  allowRead: {
    flags: '--allow-read <glob>',
    text: 'let `files` also read secrets, such as .env files',
    parse: collectValues,
  },
  address: {
    flags: '--address <host:port>',
    text: 'default: a running Temporal server, else embedded',
  },
  namespace: { flags: '--namespace <name>', text: 'of Temporal; default: `default`' },
  taskQueue: {
    flags: '--task-queue <name>',
    text: 'of the workers that execute runs; no filter; default: from the configuration, else perdure',
  },
  json: { flags: '--json', text: 'print one JSON document on stdout' },

  // Of commands that start runs, send messages, and follow.
  id: {
    flags: '--id <id>',
    text: 'workflow id of the new run, or with chat of an open one; default: the agent, the date, and a random suffix',
  },
  reuseId: { flags: '--reuse-id', text: 'reuse the id of a run that has ended' },
  open: { flags: '--open', text: 'keep the run open for more messages; see send and close' },
  detach: {
    flags: '--detach',
    text: 'exit as soon as the server or the run has the request, without following the run',
  },
  noWait: {
    flags: '--no-wait',
    text: 'follow the run, but exit when it waits for a person (exit code 3) or is blocked (4)',
  },
  by: {
    flags: '--by <name>',
    text: 'your name: recorded with what you do, not verified; default: the OS user',
  },
  agent: { flags: '--agent <name>', text: 'the agent, by name' },
  tag: { flags: '--tag <tag>', text: 'a tag of the run; may be repeated', parse: collectValues },
  limit: {
    flags: '--limit <name=value>',
    text:
      'a limit of each turn, such as steps=20, wall=10m, or tokens=none, or with run. of the ' +
      'whole run, such as run.cost-usd=5; may be repeated',
    parse: collectLimits,
  },
  tenant: { flags: '--tenant <name>', text: 'who shares the workers fairly with other tenants' },
  unattended: { flags: '--unattended', text: 'deny every approval, because no person can decide' },
  archive: {
    flags: '--archive',
    text: 'keep every message in the archive; default: only of open runs',
  },
  modelAttempts: {
    flags: '--model-attempts <n>',
    text: 'failed attempts of a model call, 1 to 10, after which the turn fails; default: wait for the model',
    parse: parseNumber,
  },
  context: {
    flags: '--context <json>',
    text: 'JSON for your tools, which the model never sees; that of a message extends that of the run',
    parse: parseJsonOption,
  },
  input: {
    flags: '--input <json>',
    text: 'for a graph: fields of its state, as JSON',
    parse: parseJsonOption,
  },
  prompt: {
    flags: '--prompt <name>',
    text: 'the name of a prompt of the agent, instead of a message',
  },
  arg: {
    flags: '--arg <name=value>',
    text: "an argument of the agent's template (of `run` and `send` also of --prompt), or name:=json; may be repeated",
    parse: collectArguments,
  },
  setting: {
    flags: '--setting <name=value>',
    text: 'a setting of the model for this turn, such as temperature=0.2; may be repeated',
    parse: collectSettings,
  },
  attach: {
    flags: '--attach <file|url>',
    text: 'an image or a PDF, or the URL of an image; may be repeated',
    parse: collectValues,
  },
  artifact: {
    flags: '--artifact <name=file>',
    text: 'a file whose content becomes an artifact of the run: JSON if it is named .json, else text; may be repeated',
    parse: collectValues,
  },
  ui: { flags: '--ui', text: 'on a terminal: keep the Temporal UI up until a key is pressed' },
  at: {
    flags: '--at <n>',
    text: 'copy only the messages before number n; default: all',
    parse: parseNumber,
  },
  node: {
    flags: '--node <name[#visit]>',
    text: "begin at this node of the run's graph, with the state that it had then; default: its newest visit",
    parse: parseNodeVisit,
  },
  steer: { flags: '--steer', text: 'join the current turn, before its next model call' },
  messageId: {
    flags: '--message-id <id>',
    text: 'make the message idempotent: an id is delivered only once',
  },
  pin: { flags: '--pin', text: 'keep the message verbatim when older messages are summarized' },
  refresh: {
    flags: '--refresh',
    text: "switch to the workers' current definition of the agent before the turn",
  },

  // Of commands that control runs and decide.
  all: {
    flags: '--all',
    text: 'all runs: of pause and resume, every running run of --agent, also without a worker; of list, also those that other runs have called',
  },
  turn: { flags: '--turn', text: 'cancel only the current turn; an open run continues' },
  digest: {
    flags: '--digest <hex>',
    text: 'the digest of the request that you have read, as shown; its first 12 digits or more',
  },
  per: {
    flags: '--per <group>',
    text: 'what costs are added up for; default: agent',
    choices: ['agent', 'tenant', 'tag'],
  },
  grant: {
    flags: '--grant <scope>',
    text: 'also approve later calls of this run: the same call, or every call of the tool',
    choices: ['same_call', 'tool'],
  },
  where: {
    flags: '--where <json>',
    text: 'with --grant tool: only calls with such arguments, e.g. {"op":"under","path":"euros","value":50}',
    parse: parseJsonOption,
  },
  some: {
    flags: '--some [ids]',
    text: 'of a plan: only the actions that need no approval, or only those with these ids, e.g. a1,a3, with all that they need',
  },
  note: {
    flags: '--note <text>',
    text: 'the reason: recorded; of a decision about a call, the model reads it',
  },
  arguments: {
    flags: '--arguments <json>',
    text: 'all new arguments of the call',
    parse: parseArgumentsOption,
    isRequired: true,
  },
  result: {
    flags: '--result <json>',
    text: 'the answer, or what the call returned, as JSON',
    parse: parseJsonOption,
  },
  as: {
    flags: '--as <decision>',
    text: 'what happened to the call, or what to do with it',
    // Those that need no more than the options of `resolve`.
    choices: DECISION_KINDS.filter((as) => DECISION_FIELDS[as] !== 'arguments'),
    isRequired: true,
  },
  actions: {
    flags: '--actions <ids>',
    text: 'the actions of a plan, e.g. a1,a3; with --as some',
  },
  definition: {
    flags: '--definition <hash>',
    text: 'the hash of the changed tool to accept; only with --as accept',
  },
  add: {
    flags: '--add <name=value>',
    text: 'raise a limit by this amount, such as steps=20, wall=10m, or run.cost-usd=5; one at which the run waits, on top of what is used if that is more; may be repeated',
    parse: collectAmounts,
  },

  // Of commands that read.
  status: {
    flags: '--status <status>',
    text: `list only runs with this status: ${Object.keys(RUN_STATUSES).join(', ')}, or ended for all that have ended`,
  },
  idPrefix: {
    flags: '--id-prefix <text>',
    text: 'list only runs whose id begins with this text',
  },
  since: {
    flags: '--since <time>',
    text: 'only runs started since: ISO 8601, or how long ago (2h, 3d)',
  },
  before: {
    flags: '--before <time>',
    text: 'only runs started (of erase: ended) before: ISO 8601, or how long ago (2h, 3d)',
  },
  root: { flags: '--root <id>', text: 'list only the runs below this run' },
  max: {
    flags: '--max <n>',
    text: 'at most n runs; default: 50, of replay all',
    parse: parseNumber,
  },
  cursor: {
    flags: '--cursor <cursor>',
    text: 'list the next page; the previous page shows its cursor',
  },
  from: { flags: '--from <n>', text: 'first message, counted from 0', parse: parseNumber },
  until: { flags: '--until <n>', text: 'stop before this message', parse: parseNumber },
  side: {
    flags: '--side',
    text: 'include refused answers and the messages to the model about them',
  },
  full: { flags: '--full', text: 'truncate nothing; fetch large texts from the blob store' },
  calls: { flags: '--calls', text: 'print the tool calls, each with its result' },
  turns: {
    flags: '--turns',
    text: 'print the turns: definition, model, settings, outcome, and usage',
  },
  run: { flags: '--run <id>', text: 'the graph of this run, with its progress' },
  out: { flags: '--out <file>', text: 'write to this file instead of stdout' },
  force: { flags: '--force', text: 'overwrite a file that exists' },
  seconds: {
    flags: '--seconds <n>',
    text: 'stop measuring after this time, at least 5; default: 60',
    parse: parseNumber,
  },
  verify: { flags: '--verify <file>', text: 'check a log offline' },
  head: { flags: '--head <hash>', text: 'the hash of the last line, as audit printed it' },
  redact: {
    flags: '--redact',
    text: 'replace secrets by marks; without it, a secret is an error that names its place',
  },
  clear: {
    flags: '--clear',
    text: 'write it in clear, although there are encryption keys; default: encrypted if there are any',
  },
  key: {
    flags: '--key <id>',
    text: 'encrypt it with this one of your keys; default: the key that encrypts the run',
  },
  segment: {
    flags: '--segment <n>',
    text: 'export this segment, counted from 1; default: the newest',
    parse: parseNumber,
  },
  allSegments: {
    flags: '--all-segments',
    text: 'export every segment that the server or the archive has, as FILE-1, FILE-2, …',
  },
  fromServer: {
    flags: '--from-server [query]',
    text: 'replay runs on the server; default: all that are running, and the workflows of budgets and rates',
  },
  expiresIn: {
    flags: '--expires-in <duration>',
    text: 'how long the token is valid, such as 15m; at most 7 days; default: an hour',
    parse: parseDurationOption,
  },

  ...SCHEDULE_OPTIONS,

  // Of erasure.
  orphans: {
    flags: '--orphans',
    text: 'also remove the stored texts to which no run refers; runs on another server that use the same storage are not seen',
  },
  grace: {
    flags: '--grace <duration>',
    text: 'texts that were stored within this time stay; default: a day; 0s only while nothing runs',
    parse: parseDurationOption,
  },
  storeNamespace: {
    flags: '--store-namespace <name>',
    text: 'a namespace whose runs use the same storage; may be repeated; default: all of the server',
    parse: collectValues,
  },

  // Of workers, MCP, and doctor.
  host: { flags: '--host <host>', text: 'address; any but 127.0.0.1 needs PERDURE_SERVE_KEYS' },
  port: {
    flags: '--port <n>',
    text: 'port to serve at; of serve and dev 8788, of codec 8789',
    parse: parseNumber,
  },
  origin: { flags: '--origin <origin...>', text: 'other pages that may use it' },
  noWorker: { flags: '--no-worker', text: 'host no worker' },
  livePort: { flags: '--live-port <n>', text: 'of live streams; default: any', parse: parseNumber },
  liveHost: {
    flags: '--live-host <host>',
    text: 'address of the live stream; any but 127.0.0.1 needs PERDURE_LIVE_TOKEN',
  },
  metrics: {
    flags: '--metrics <address>',
    text: 'export metrics for Prometheus at HOST:PORT, or at a port of 127.0.0.1; default: PERDURE_METRICS, else none',
  },
  noLive: { flags: '--no-live', text: 'do not serve the live stream of replies' },
  maxCached: {
    flags: '--max-cached <n>',
    text: 'maximum number of idle runs kept in memory; default: based on the heap size',
    parse: parseNumber,
  },
  deployment: {
    flags: '--deployment <name>',
    text: 'use worker versioning: runs stay on the build they started on',
  },
  buildId: {
    flags: '--build-id <id>',
    text: 'name of this build; default: derived from the workflow code',
  },
  noPromote: {
    flags: '--no-promote',
    text: 'keep starting new runs on the current build until you promote this one',
  },
  allRuns: {
    flags: '--all-runs',
    text: 'serve every run of the namespace; default: only the runs that this server started',
  },
  decide: {
    flags: '--decide',
    text: 'also offer tools that list requests and decide about them: the client can then approve',
  },
  dryRun: { flags: '--dry-run', text: 'only show the changes' },
  yes: { flags: '--yes', text: 'do not ask at the terminal' },
  model: {
    flags: '--model <name>',
    text: 'call this model of the configuration, or of a provider, in place of the recorded one; of eval required',
  },
  runs: {
    flags: '--runs <n>',
    text: 'runs of each case with the model; default: 1',
    parse: parseNumber,
  },
  atOnce: { flags: '--at-once <n>', text: 'cases at once; default: 4', parse: parseNumber },
  scorers: {
    flags: '--scorers <file>',
    text: 'a module that exports `scorers`, functions by name, and `gates`',
  },
  junit: { flags: '--junit <file>', text: 'also write a report in the form of JUnit' },
  noModel: { flags: '--no-model', text: 'do not call models; report them as not checked' },
} as const satisfies Readonly<Record<string, Declared>>;

/** The name of an option in the table of options. */
export type OptionName = keyof typeof OPTIONS;

/** Declares options of a command, in this order. */
export function withOptions(entry: Entry, ...names: readonly OptionName[]): Entry {
  for (const name of names) {
    const { flags, text, parse, choices, isRequired }: Declared = OPTIONS[name];
    const option = new Option(flags, text);
    if (choices !== undefined) option.choices(choices);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- commander passes what it returned
    if (parse !== undefined) option.argParser(parse as (text: string, before: unknown) => unknown);
    if (isRequired) option.makeOptionMandatory();
    entry.addOption(option);
  }
  return entry;
}
