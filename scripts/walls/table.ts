/** What the files of one folder of `src/` may import. A file in `src/` itself counts as a folder. */
export interface Wall {
  /** A folder of `src/` with all that is in it, or a file in `src/` itself. */
  readonly folder: string;
  /** The other folders that it may import, types included. Each is before it in the table. */
  readonly folders: readonly string[];
  /** The packages that it may import, types included; `node:` stands for all of Node's own modules. */
  readonly packages: readonly string[];
  /** Why this is all that the folder may import. */
  readonly why: string;
}

const CLIENT = '@temporalio/client';
const COMMON = '@temporalio/common';
const WORKER = '@temporalio/worker';
const NODE = 'node:';

/**
 * Who may import whom. Everything else is refused. `npm run walls` writes the lint rules and the
 * table in ARCHITECTURE.md from this list, and test/walls.test.ts checks all imports of `src/`.
 *
 * The lowest level comes first: a folder imports only folders before it in this list, so there are no
 * cycles between folders.
 */
export const WALLS: readonly Wall[] = [
  {
    folder: 'core',
    folders: [],
    packages: ['@noble/hashes'],
    why: 'Every decision about a run is a pure function, and runs in workflows and readers alike.',
  },
  {
    folder: 'secrets',
    folders: [],
    packages: [],
    why: 'Every boundary redacts, so everything but core may import it.',
  },
  {
    folder: 'validation',
    folders: ['core'],
    packages: ['zod', 'fastest-levenshtein'],
    why: 'Checks options and describes faults in values, in one form for all folders.',
  },
  {
    folder: 'workflows',
    folders: ['core'],
    packages: ['@temporalio/workflow', COMMON],
    why: 'Workflow code is deterministic: it uses core, the SDK, and recorded results only.',
  },
  {
    folder: 'storage',
    folders: ['core', 'validation'],
    packages: [NODE, 'zod', '@aws-sdk/client-s3'],
    why: 'Blobs, the archive, and files on disk do not depend on runs.',
  },
  {
    folder: 'temporal',
    folders: ['core', 'secrets'],
    packages: [NODE, CLIENT, COMMON, WORKER, '@temporalio/envconfig'],
    why: 'Connections, task queues, and search attributes: what any Temporal program needs.',
  },
  {
    folder: 'encryption',
    folders: ['core', 'secrets', 'validation', 'storage', 'temporal'],
    packages: [NODE, COMMON, WORKER],
    why: 'Encrypts what leaves the process: payloads, messages of failures, and blobs.',
  },
  {
    folder: 'server',
    folders: ['core', 'storage', 'temporal'],
    packages: [NODE, CLIENT, 'zod'],
    why: 'Finds and starts the embedded server; it does not depend on agents.',
  },
  {
    folder: 'updates',
    folders: ['core', 'temporal', 'workflows'],
    packages: [NODE, CLIENT, COMMON],
    why: 'Starts runs and sends them messages, for clients and for activities that call agents.',
  },
  {
    folder: 'history',
    folders: ['core', 'validation', 'storage', 'temporal'],
    packages: [NODE, CLIENT, COMMON],
    why: 'Reads a run from its event history, without a worker.',
  },
  {
    folder: 'tools',
    folders: ['core', 'secrets', 'validation', 'storage'],
    packages: [NODE, 'zod'],
    why: 'A tool does not depend on the engine that calls it.',
  },
  {
    folder: 'prompts',
    folders: ['core', 'validation', 'tools'],
    packages: ['zod'],
    why: 'Templates do not depend on models or runs.',
  },
  {
    folder: 'models',
    folders: ['core', 'secrets', 'validation', 'tools'],
    packages: [
      NODE,
      'openai',
      '@anthropic-ai/sdk',
      '@ai-sdk/provider',
      'zod',
      'eventsource-parser',
      'lru-cache',
    ],
    why: 'The only importer of the SDKs of providers; a model does not depend on the engine that calls it.',
  },
  {
    folder: 'testing',
    folders: ['core', 'validation', 'tools', 'models'],
    packages: [NODE, 'zod'],
    why: 'Test doubles: servers that speak the wire formats, and the context of a tool call.',
  },
  {
    folder: 'output',
    folders: ['core', 'validation', 'tools', 'models'],
    packages: [NODE, 'zod', 'lru-cache'],
    why: 'Reads answers; it does not depend on the code that requested them.',
  },
  {
    folder: 'mcp',
    folders: ['core', 'secrets', 'validation', 'storage', 'tools', 'output'],
    packages: [NODE, 'zod', '@modelcontextprotocol/client', 'eventsource-parser'],
    why: 'MCP servers are not trusted: everything that they send is checked here.',
  },
  {
    folder: 'agents',
    folders: [
      'core',
      'secrets',
      'validation',
      'storage',
      'tools',
      'prompts',
      'models',
      'output',
      'mcp',
    ],
    packages: [NODE, 'zod'],
    why: 'Definitions are data, made from tools, models, and output contracts.',
  },
  {
    folder: 'graphs',
    folders: ['core', 'validation', 'tools', 'mcp', 'agents'],
    packages: ['zod'],
    why: 'A graph is an agent with a table of nodes; it is made from agents and tools.',
  },
  {
    folder: 'config.ts',
    folders: ['core', 'secrets', 'validation', 'temporal', 'encryption', 'agents', 'models'],
    packages: ['zod'],
    why: 'The configuration lists agents and models.',
  },
  {
    folder: 'telemetry',
    folders: ['core', 'secrets'],
    packages: [CLIENT, COMMON, WORKER, '@opentelemetry/api'],
    why: 'Spans, and their propagation from clients to activities. Does nothing without an OpenTelemetry SDK.',
  },
  {
    folder: 'live',
    folders: ['core', 'secrets', 'validation', 'storage', 'temporal', 'history', 'models'],
    packages: [NODE, CLIENT, COMMON, 'hono', '@hono/node-server'],
    why: 'Carries replies in progress from workers to readers; the run never depends on it.',
  },
  {
    folder: 'activities',
    folders: [
      'core',
      'secrets',
      'validation',
      'storage',
      'temporal',
      'updates',
      'history',
      'tools',
      'prompts',
      'models',
      'output',
      'mcp',
      'agents',
      'telemetry',
      'live',
    ],
    packages: [NODE, 'zod', 'lru-cache', CLIENT, COMMON, '@temporalio/activity'],
    why: 'The only folder that calls user code, models, and other systems.',
  },
  {
    folder: 'client',
    folders: [
      'core',
      'validation',
      'storage',
      'temporal',
      'encryption',
      'server',
      'workflows',
      'updates',
      'history',
      'telemetry',
      'live',
    ],
    packages: [NODE, CLIENT, COMMON, 'zod'],
    why: 'The public client, for the server that the command would use; it needs no agent, model, or tool.',
  },
  {
    folder: 'worker',
    folders: [
      'core',
      'secrets',
      'validation',
      'storage',
      'temporal',
      'encryption',
      'server',
      'history',
      'tools',
      'models',
      'mcp',
      'agents',
      'config.ts',
      'telemetry',
      'live',
      'activities',
      'client',
    ],
    packages: [NODE, 'zod', CLIENT, WORKER, '@temporalio/activity', '@temporalio/workflow'],
    why: 'The parts of a worker. They refer to workflows by file and never import them.',
  },
  {
    folder: 'http',
    folders: [
      'core',
      'secrets',
      'validation',
      'storage',
      'temporal',
      'updates',
      'history',
      'agents',
      'config.ts',
      'live',
      'client',
    ],
    packages: [
      NODE,
      COMMON,
      'zod',
      'hono',
      '@hono/node-server',
      'jose',
      'lru-cache',
      'eventsource-parser',
      '@modelcontextprotocol/server',
    ],
    why: 'The interfaces of the server: HTTP requests become calls of the client, for principals that were checked.',
  },
  {
    folder: 'memory',
    folders: [
      'core',
      'validation',
      'storage',
      'temporal',
      'updates',
      'history',
      'tools',
      'models',
      'testing',
      'agents',
      'config.ts',
      'worker',
      'client',
    ],
    packages: [NODE, CLIENT, COMMON, '@temporalio/activity'],
    why: 'A server and a worker in this process, for tests: it runs the workflow bundle and the activities, and has no rule of its own.',
  },
  {
    folder: 'recordings',
    folders: [
      'core',
      'secrets',
      'validation',
      'storage',
      'encryption',
      'history',
      'tools',
      'models',
      'testing',
      'output',
      'agents',
      'client',
      'memory',
    ],
    packages: [NODE, CLIENT, 'fastest-levenshtein', 'zod'],
    why: 'Runs that happened, as test cases: read from histories, checked, executed again, and compared.',
  },
];

/** One folder of `src/core/`. */
export interface Layer {
  /** A folder of `src/core/`; `.` stands for the files in `src/core/` itself. */
  readonly folder: string;
  /** What it holds. */
  readonly holds: string;
}

/**
 * The layers of the core, from data over rules to the run. A folder imports only folders before it
 * in this list, types included, so no two folders of the core import each other.
 */
export const CORE_LAYERS: readonly Layer[] = [
  { folder: 'text', holds: 'JSON values, text, and the shapes that check stored data' },
  { folder: 'definition', holds: 'what an agent is: its tools, rules, predicates, and graph' },
  { folder: 'transcript', holds: 'messages, results of calls, requests, decisions, and outcomes' },
  { folder: '.', holds: 'the errors that callers see' },
  { folder: 'input', holds: 'what a run and a message bring along, and its checks' },
  { folder: 'state', holds: 'the state of a run, a turn, and work under way' },
  { folder: 'rules', holds: 'limits, compaction, and the documents of a prompt' },
  { folder: 'calls', holds: 'the calls of a reply: opened, executed, and completed' },
  { folder: 'guards', holds: 'checks of carried state and of recorded results' },
  { folder: 'plan', holds: 'plans: references, confirmation, and results' },
  {
    folder: 'graph',
    holds:
      'graphs: the walk over their nodes, drawings, and the hooks by which they take part in a turn',
  },
  { folder: 'requests', holds: 'requests to people: raised, shown, answered, and refused' },
  { folder: 'run', holds: 'reduce and next action: what an event changes, and what comes next' },
  { folder: 'segments', holds: 'the first state of a segment, and migrations of older ones' },
  { folder: 'interpret', holds: 'recorded facts become events, and the loop that does both' },
];

/** The entry points of the package and the command. They may import every folder; no folder imports them. */
export const ENTRIES: readonly string[] = [
  'client.ts',
  'graphs.ts',
  'http.ts',
  'models.ts',
  'ai-sdk.ts',
  'worker.ts',
  'workflow.ts',
  'testing.ts',
  'vitest.ts',
  'tools.ts',
  'output.ts',
  'index.ts',
  'cli',
];
