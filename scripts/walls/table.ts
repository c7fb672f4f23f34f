/** What the files of one room of `src/` may import. */
export interface Wall {
  /** A folder of `src/` with everything in it, or a file directly in `src/`. */
  readonly room: string;
  /** The other rooms that it may import, types included. Each is above it in the table. */
  readonly rooms: readonly string[];
  /** The packages that it may import, types included; `node:` stands for all of Node's own modules. */
  readonly packages: readonly string[];
  /** The reason for the wall. */
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
 * The order is that of the floors: a room imports only rooms above it in this list, so there are
 * neither upward imports nor cycles between rooms.
 */
export const WALLS: readonly Wall[] = [
  {
    room: 'core',
    rooms: [],
    packages: ['@noble/hashes'],
    why: 'Every decision about a run is a pure function, and runs in workflows and readers alike.',
  },
  {
    room: 'secrets',
    rooms: [],
    packages: [],
    why: 'Every boundary redacts, so every room but core may import it.',
  },
  {
    room: 'validation',
    rooms: ['core'],
    packages: ['zod', 'fastest-levenshtein'],
    why: 'Checks options and describes faults in values, in one form for all rooms.',
  },
  {
    room: 'workflows',
    rooms: ['core'],
    packages: ['@temporalio/workflow', COMMON],
    why: 'Workflow code is deterministic: it uses core, the SDK, and recorded results only.',
  },
  {
    room: 'storage',
    rooms: ['core', 'validation'],
    packages: [NODE, 'zod', '@aws-sdk/client-s3'],
    why: 'Blobs, the archive, and files on disk do not depend on runs.',
  },
  {
    room: 'temporal',
    rooms: ['core', 'secrets'],
    packages: [NODE, CLIENT, COMMON, WORKER, '@temporalio/envconfig'],
    why: 'Connections, task queues, and search attributes: what any Temporal program needs.',
  },
  {
    room: 'server',
    rooms: ['core', 'storage', 'temporal'],
    packages: [NODE, CLIENT, 'zod'],
    why: 'Finds and starts the embedded server; it does not depend on agents.',
  },
  {
    room: 'updates',
    rooms: ['core', 'temporal', 'workflows'],
    packages: [NODE, CLIENT, COMMON],
    why: 'Starts runs and sends them messages, for clients and for activities that call agents.',
  },
  {
    room: 'history',
    rooms: ['core', 'storage', 'temporal'],
    packages: [NODE, CLIENT, COMMON],
    why: 'Reads a run from its event history, without a worker.',
  },
  {
    room: 'tools',
    rooms: ['core', 'secrets', 'validation', 'storage'],
    packages: [NODE, 'zod'],
    why: 'A tool does not depend on the engine that calls it.',
  },
  {
    room: 'testing',
    rooms: ['core', 'tools'],
    packages: [NODE, 'zod'],
    why: 'Test doubles: servers that speak the wire formats, and the context of a tool call.',
  },
  {
    room: 'prompts',
    rooms: ['core', 'validation', 'tools'],
    packages: ['zod'],
    why: 'Templates do not depend on models or runs.',
  },
  {
    room: 'models',
    rooms: ['core', 'secrets', 'validation', 'tools'],
    packages: [NODE, 'openai', '@anthropic-ai/sdk', 'zod', 'eventsource-parser'],
    why: 'The only importer of the SDKs of providers; a model does not depend on the engine that calls it.',
  },
  {
    room: 'output',
    rooms: ['core', 'validation', 'tools', 'models'],
    packages: [NODE, 'zod', 'lru-cache'],
    why: 'Reads answers; it does not depend on the code that requested them.',
  },
  {
    room: 'mcp',
    rooms: ['core', 'secrets', 'validation', 'storage', 'tools', 'output'],
    packages: [NODE, 'zod', '@modelcontextprotocol/client'],
    why: 'MCP servers are not trusted: everything that they send is checked here.',
  },
  {
    room: 'agents',
    rooms: [
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
    room: 'graphs',
    rooms: ['core', 'validation', 'tools', 'mcp', 'agents'],
    packages: ['zod'],
    why: 'A graph is an agent with a table of nodes; it is made from agents and tools.',
  },
  {
    room: 'config.ts',
    rooms: ['core', 'secrets', 'validation', 'agents', 'models'],
    packages: ['zod'],
    why: 'The configuration lists agents and models.',
  },
  {
    room: 'telemetry',
    rooms: ['core', 'secrets'],
    packages: [CLIENT, COMMON, WORKER, '@opentelemetry/api'],
    why: 'Spans, and their propagation from clients to activities. Does nothing without an OpenTelemetry SDK.',
  },
  {
    room: 'live',
    rooms: ['core', 'secrets', 'storage', 'temporal', 'history', 'models'],
    packages: [NODE, CLIENT],
    why: 'Carries replies in progress from workers to readers; the run never depends on it.',
  },
  {
    room: 'activities',
    rooms: [
      'core',
      'secrets',
      'validation',
      'storage',
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
    why: 'The only room that calls user code, models, and the outside world.',
  },
  {
    room: 'worker',
    rooms: [
      'core',
      'secrets',
      'validation',
      'storage',
      'temporal',
      'history',
      'tools',
      'models',
      'mcp',
      'agents',
      'config.ts',
      'telemetry',
      'live',
      'activities',
    ],
    packages: [NODE, 'zod', CLIENT, WORKER, '@temporalio/activity', '@temporalio/workflow'],
    why: 'The parts of a worker. They refer to workflows by file and never import them.',
  },
  {
    room: 'client',
    rooms: [
      'core',
      'validation',
      'storage',
      'temporal',
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
];

/**
 * The entry points of the package and the command. They may import every room; no room imports
 * them.
 */
export const ENTRIES: readonly string[] = [
  'worker.ts',
  'workflow.ts',
  'testing.ts',
  'tools.ts',
  'output.ts',
  'index.ts',
  'cli',
];
