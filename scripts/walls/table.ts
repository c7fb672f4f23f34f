/** What the files of one room of `src/` may import. */
export interface Wall {
  /** A folder of `src/` with all that it holds, or a file that lies in `src/` itself. */
  readonly room: string;
  /** The other rooms that it may import, types included. Each stands above it in the table. */
  readonly rooms: readonly string[];
  /** The packages that it may import, types included; `node:` stands for all of Node's own modules. */
  readonly packages: readonly string[];
  /** Why the wall stands where it does. */
  readonly why: string;
}

const CLIENT = '@temporalio/client';
const COMMON = '@temporalio/common';
const WORKER = '@temporalio/worker';
const NODE = 'node:';

/**
 * Who may import whom. Everything else is refused. `npm run walls` writes the lint rules and the
 * table in ARCHITECTURE.md from this list, and test/walls.test.ts walks all imports of `src/`.
 *
 * The order is the order of the floors: a room imports only rooms above it in this list, so
 * there are neither upward imports nor cycles between rooms.
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
    why: 'Redaction stands at every boundary, so everything but core may import it.',
  },
  {
    room: 'validation',
    rooms: ['core'],
    packages: ['zod', 'fastest-levenshtein'],
    why: 'Checks options and describes what is wrong with a value, in one form for all rooms.',
  },
  {
    room: 'workflows',
    rooms: ['core'],
    packages: ['@temporalio/workflow', COMMON],
    why: 'Workflow code is deterministic: it sees core, the SDK, and recorded results.',
  },
  {
    room: 'storage',
    rooms: ['core'],
    packages: [NODE, '@aws-sdk/client-s3'],
    why: 'Blobs, archive, and files on disk know nothing of runs.',
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
    packages: [NODE, CLIENT, COMMON, 'zod'],
    why: 'Finds and starts the embedded server; it knows nothing of agents.',
  },
  {
    room: 'updates',
    rooms: ['core', 'temporal', 'workflows'],
    packages: [NODE, CLIENT, COMMON],
    why: 'Starts runs and sends them messages, for clients and for activities that call agents.',
  },
  {
    room: 'history',
    rooms: ['core', 'storage'],
    packages: [NODE, CLIENT, COMMON],
    why: 'Reads a run from its event history, without a worker.',
  },
  {
    room: 'tools',
    rooms: ['core', 'secrets', 'validation', 'storage'],
    packages: [NODE, 'zod'],
    why: 'A tool knows nothing of the engine that calls it.',
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
    why: 'Templates know nothing of models or runs.',
  },
  {
    room: 'models',
    rooms: ['core', 'secrets', 'validation', 'tools'],
    packages: [NODE, 'openai', '@anthropic-ai/sdk', 'zod', 'eventsource-parser'],
    why: 'The only importer of the SDKs of providers; a model knows nothing of the engine that calls it.',
  },
  {
    room: 'output',
    rooms: ['core', 'validation', 'tools', 'models'],
    packages: [NODE, 'zod', 'lru-cache'],
    why: 'Reads answers; whoever asked for them is out of its sight.',
  },
  {
    room: 'mcp',
    rooms: ['core', 'secrets', 'validation', 'storage', 'tools', 'output'],
    packages: [NODE, 'zod', '@modelcontextprotocol/client'],
    why: 'MCP servers are strangers: all that they send passes through here.',
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
    rooms: ['secrets', 'validation', 'agents', 'models'],
    packages: ['zod'],
    why: 'The configuration lists agents and models.',
  },
  {
    room: 'telemetry',
    rooms: ['core', 'secrets'],
    packages: [CLIENT, COMMON, WORKER, '@opentelemetry/api'],
    why: 'Spans, and how they cross from clients to activities. Without an OpenTelemetry SDK it does nothing.',
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
    why: 'The edge, where user code, models, and the world are called.',
  },
  {
    room: 'worker',
    rooms: [
      'core',
      'secrets',
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
    packages: [NODE, CLIENT, WORKER, '@temporalio/activity', '@temporalio/workflow'],
    why: 'The parts of a worker. They name workflows by file and never import them.',
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
    why: 'The public client, on the server that the command would use: it needs no agent, model, or tool.',
  },
];

/** The entry points of the package and the command. They may import every room; no room imports them. */
export const ENTRIES: readonly string[] = [
  'worker.ts',
  'workflow.ts',
  'testing.ts',
  'tools.ts',
  'output.ts',
  'index.ts',
  'cli',
];
