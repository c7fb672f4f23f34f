import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { type Server, createServer as createHttpServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { type TestContext, afterAll, beforeAll, describe, expect, test } from 'vitest';
import { defineConfig } from '../../src/config.js';
import { isJsonObject, type JsonObject } from '../../src/core/text/json.js';
import { createServer, type Listening, listen } from '../../src/http.js';
import { isInputRequired } from '../../src/mcp/input-required.js';
import { usableTool } from '../../src/mcp/listed-tool.js';
import { mcpServer } from '../../src/mcp/mcp-server.js';
import { createSession, type McpSession } from '../../src/mcp/session.js';
import { clientOf } from '../support/clerk.js';
import { contractPackages } from '../support/contract-packages.js';
import { portOf } from '../support/port-of.js';
import { createRig, type Rig } from '../support/rig.js';

/**
 * The official conformance suites of MCP: the released one with version 2025-11-25 of the protocol, and the
 * one that knows version 2026-07-28. A case that perdure cannot pass fails for one of these reasons.
 */
const SERVER_LACKS: Readonly<Record<string, RegExp>> = {
  'it has no prompts, resources, completions, and log messages':
    /^(?:prompts-|resources-|completion-|logging-|tools-call-with-logging|caching:sep-2549-(?:prompts|resources)-|input-required-result-non-tool-request)/,
  'it has its own tools, none of those that the suite calls':
    /^(?:tools-call-|elicitation-|json-schema-2020-12|input-required-result-|http-custom-header-|server-stateless:.*(?:undeclared-capability|missing-capability|no-independent-requests|no-log-without-loglevel))/,
  'runs take the place of tasks, an optional extension': /^tasks-/,
};
const CLIENT_LACKS: Readonly<Record<string, RegExp>> = {
  'its keys come from the environment of the worker, and it logs in nowhere': /^auth\//,
  'a server that asks within an open call cannot wait for days': /^elicitation-sep1034-/,
  // Only reconnecting too early is a fault; a busy machine is late.
  'a busy machine is late': /^sse-retry:client-sse-retry-timing: .* very late/,
};

const SUITES = {
  released: '@modelcontextprotocol/conformance',
  2026: 'conformance-2026',
} as const;
const FORWARD = fileURLToPath(new URL('../fixtures/mcp/forward.mjs', import.meta.url));

const packages = await contractPackages();
let rig: Rig;
let serving: Listening;
let playing: Server;

beforeAll(async () => {
  rig = await createRig();
  const client = await clientOf(rig);
  const config = defineConfig({ agents: [] });
  // Without keys, for this machine only: the suite has none.
  serving = await listen(await createServer({ client, config, env: {} }));
  playing = createHttpServer(async (request, response) => {
    // What a server refuses is among the checks of its scenario.
    await play(JSON.parse(await text(request))).catch(() => undefined);
    response.end();
  }).listen(0, '127.0.0.1');
  await once(playing, 'listening');
});
afterAll(async () => {
  playing.close();
  await serving.close();
  await rig.close();
});

interface Scenario {
  readonly server: string;
  /** JSON with calls that the scenario wants. */
  readonly context?: string;
}

/** Uses the server of a scenario as a run does: calls each tool that a model could call. */
async function play({ server: url, context = '{}' }: Scenario): Promise<void> {
  const server = mcpServer({ name: 'suite', transport: 'http', url });
  const session = createSession(server, {});
  try {
    const { tools } = await session.listing({ maxAgeMs: 0 });
    const usable = tools.filter((tool) => usableTool(server, tool).ok);
    // One scenario wants the schema of its first tool back.
    const given = { a: 1, b: 2, schema: tools[0]?.schema ?? {} };
    const all = usable.map(({ name }) => ({ name, arguments: given }));
    const { toolCalls: calls = all } = JSON.parse(context) as { readonly toolCalls?: typeof all };
    for (const call of calls) await callAndAnswer(session, call.name, call.arguments);
  } finally {
    await session.close();
  }
}

/** Calls a tool, and accepts what its server asks then. */
async function callAndAnswer(session: McpSession, tool: string, given: JsonObject): Promise<void> {
  const { signal } = new AbortController();
  const how = { signal, idempotencyKey: tool };
  const result = await session.call(tool, given, how);
  if (!isInputRequired(result)) return;
  const { inputRequests, requestState: state } = result;
  const keys = isJsonObject(inputRequests) ? Object.keys(inputRequests) : [];
  const answer = { action: 'accept', content: { confirmed: true } } as const;
  const answers = Object.fromEntries(keys.map((key) => [key, answer]));
  const answered = { answers, ...(typeof state === 'string' && { state }) };
  await session.call(tool, given, { ...how, answered });
}

/** The scenarios of a suite that passed, and what failed for none of the reasons. */
interface Verdict {
  readonly passed: readonly string[];
  readonly failed: readonly string[];
}

interface Check {
  readonly id: string;
  readonly status: string;
  readonly errorMessage?: string;
}

/** Plays a suite. Skips the test if it cannot be installed. */
async function verdict(
  context: TestContext,
  suite: keyof typeof SUITES,
  lacks: Readonly<Record<string, RegExp>>,
  args: readonly string[],
): Promise<Verdict> {
  if (typeof packages === 'string') return context.skip(packages);
  const { folder, node } = packages;
  const output = await mkdtemp(join(tmpdir(), 'perdure-suite-'));
  const main = join(folder, 'node_modules', SUITES[suite], 'dist/index.js');
  const options = { maxBuffer: 2 ** 26 };
  // It fails, since not all of its cases apply.
  await new Promise((resolve) => {
    execFile(node, [main, ...args, '--output-dir', output], options, resolve);
  });
  const failures = new Map<string, readonly string[]>();
  for (const path of await readdir(output, { recursive: true })) {
    const [, scenario] = /^(?:server-)?(.*)-\d{4}-\d\d-\d\dT[^/]*\/checks\.json$/.exec(path) ?? [];
    if (scenario === undefined) continue;
    const checks = JSON.parse(await readFile(join(output, path), 'utf8')) as readonly Check[];
    const bad = checks.filter(({ status }) => status === 'FAILURE');
    failures.set(
      scenario,
      bad.map(({ id, errorMessage = '' }) => `${scenario}:${id}: ${errorMessage}`),
    );
  }
  await rm(output, { recursive: true });
  const isLacking = (failure: string) => Object.values(lacks).some((one) => one.test(failure));
  const all = [...failures].toSorted(([one], [other]) => one.localeCompare(other));
  return {
    // One of which only some checks do not apply has passed the others.
    passed: all.flatMap(([scenario, failed]) => {
      const isPartly = failed.every((one) => isLacking(one) && !isLacking(`${scenario}:`));
      return isPartly ? [scenario] : [];
    }),
    failed: all.flatMap(([, failed]) => failed.filter((one) => !isLacking(one))),
  };
}

describe('the MCP server', () => {
  test('conforms to version 2025-11-25', async (context) => {
    const args = ['server', '--url', `${serving.url}/mcp`, '--suite', 'all'];
    expect(await verdict(context, 'released', SERVER_LACKS, args)).toEqual({
      passed: [
        'dns-rebinding-protection',
        'ping',
        'server-initialize',
        'server-sse-multiple-streams',
        'server-sse-polling',
        'tools-list',
      ],
      failed: [],
    });
  });

  test('conforms to version 2026-07-28', async (context) => {
    const args = ['server', '--url', `${serving.url}/mcp`, '--requirements', '2026-07-28'];
    expect(await verdict(context, 2026, SERVER_LACKS, args)).toEqual({
      passed: [
        'caching',
        'dns-rebinding-protection',
        'http-header-validation',
        'input-required-result-ignore-extra-params',
        'input-required-result-missing-input-response',
        'input-required-result-unsupported-methods',
        'input-required-result-validate-input',
        'sep-2164-resource-not-found',
        'server-sse-multiple-streams',
        'server-stateless',
        'tasks-status-notifications',
        'tools-list',
      ],
      failed: [],
    });
  });
});

describe('the MCP client', () => {
  /** Starts nothing for a scenario in which a client logs in. */
  const played = `sh -c 'case $MCP_CONFORMANCE_SCENARIO in auth/*) ;; *) exec "$0" "$@" ;; esac'`;
  const client = () => {
    const forward = `${process.execPath} ${FORWARD} http://127.0.0.1:${portOf(playing)}`;
    return ['client', '--command', `${played} ${forward}`];
  };

  test('conforms to version 2025-11-25', async (context) => {
    const args = [...client(), '--suite', 'core'];
    expect(await verdict(context, 'released', CLIENT_LACKS, args)).toEqual({
      passed: ['initialize', 'sse-retry', 'tools_call'],
      failed: [],
    });
  });

  test('conforms to version 2026-07-28', async (context) => {
    const args = [...client(), '--requirements', '2026-07-28'];
    expect(await verdict(context, 2026, CLIENT_LACKS, args)).toEqual({
      passed: [
        'http-custom-headers',
        'http-invalid-tool-headers',
        'http-standard-headers',
        'json-schema-2020-12-preservation',
        'json-schema-ref-no-deref',
        'request-metadata',
        'sep-2322-client-request-state',
        'tools_call',
      ],
      failed: [],
    });
  });
});
