import type { McpServer } from '@modelcontextprotocol/server';
import type { Hono } from 'hono';
import { withAllArguments } from '../client/requests.js';
import { resultUnlessResting } from '../client/until-resting.js';
import { InputError } from '../core/errors.js';
import { type RunStatus, isOpenStatus } from '../core/state/status.js';
import { parseForeignJson } from '../core/text/json.js';
import { ownVersion } from '../storage/files.js';
import { type Place, openRun } from './access.js';
import { type DoorParts, callerOf, utf8Text } from './api-routes.js';
import { errorAnswer } from './errors.js';
import type { Guarded } from './guard.js';
import { type Caller, SEES_REQUESTS, createHandlers } from './handlers.js';
import {
  RUN_TOOLS,
  UNCHANGING,
  WAIT_SECONDS,
  endedAnswer,
  failedResult,
  failuresAs,
  listedRequests,
  toListedAgent,
  toStatusAnswer,
  toolResult,
  unfinishedAnswer,
  withDecideTools,
  withNextAct,
} from './mcp-tools.js';
import {
  decisionNamed,
  inToolTerms,
  nothingToCancel,
  refuseInOwnWords,
  refuseUnknownTools,
  toolCallFault,
} from './input-fields.js';
import { shownToModel } from './views.js';

/** The path of the MCP server. */
export const MCP_PATH = '/mcp';

/**
 * Adds an MCP server over streamable HTTP, with the tools of `perdure mcp` and the rights of the
 * principal. It is stateless: every request is answered by a server of its own, of the version of
 * the protocol that the request has.
 */
export function addMcpRoute(
  app: Hono<Guarded>,
  parts: DoorParts,
  { canDecide }: { readonly canDecide: boolean },
): void {
  const { place } = parts;
  const handlers = createHandlers(place);
  const log = (error: unknown): void => parts.logFailure(MCP_PATH, error);
  app.all(MCP_PATH, async (context) => {
    const request = await singleRequest(context.req.raw);
    const { McpServer: Server, createMcpHandler } = await import('@modelcontextprotocol/server');
    const caller = callerOf(context, parts);
    const handler = createMcpHandler(
      () => {
        const server = new Server({ name: 'perdure', version: ownVersion() }, UNCHANGING);
        refuseInOwnWords(server, (message) => failedResult(message, 'input'));
        const tools = { place, handlers, caller, log, canDecide };
        addRunTools(server, tools);
        if (canDecide) addDecideTools(server, tools);
        refuseUnknownTools(server, '`serve: { mcp: { decide: true } }` in its configuration');
        return server;
      },
      { maxRequestBodySize: parts.limits.bodyBytes },
    );
    return await handler.fetch(request);
  });
}

/**
 * Returns a request. Throws an `InputError` if its body is not JSON that can be kept exactly, or a list of
 * messages (a JSON-RPC batch), which would count as one for the rate of its principal.
 */
async function singleRequest(request: Request): Promise<Request> {
  if (request.method !== 'POST') return request;
  const text = utf8Text(await request.clone().arrayBuffer());
  if (text.trimStart().startsWith('[')) {
    throw new InputError(
      'body: expected one JSON-RPC message, got a list; send each in a request of its own',
    );
  }
  // The SDK would change large numbers in the arguments without a word. It rejects invalid JSON itself.
  const json = parseForeignJson(text);
  if (!json.ok && json.isJson) throw new InputError(`body: ${json.problem}`);
  const fault = json.ok ? toolCallFault(json.value) : null;
  if (fault !== null) throw new InputError(fault);
  return request;
}

/** What the tools of one request need. */
interface ToolParts {
  readonly place: Place;
  readonly handlers: ReturnType<typeof createHandlers>;
  readonly caller: Caller;
  readonly log: (error: unknown) => void;
  /** Whether the server offers the tools for decisions: its clients, which are models, may decide. */
  readonly canDecide: boolean;
}

/** Makes failed results of errors, in the words of the HTTP API. */
function answering({
  place,
  log,
}: Pick<ToolParts, 'place' | 'log'>): ReturnType<typeof failuresAs> {
  return failuresAs((thrown) => {
    const { body, isHidden } = errorAnswer(thrown, place.runnable);
    if (isHidden) log(thrown);
    const { code, message, fix } = body.error;
    return { code, message: inToolTerms(fix === null ? message : `${message}; ${fix}`) };
  });
}

function addRunTools(server: McpServer, parts: ToolParts): void {
  const { place, handlers, caller, canDecide } = parts;
  const tool = answering(parts);
  const readStatus = async (run: string): Promise<RunStatus> => {
    const status = await handlers.getRun({ run }, caller);
    const isDecider = canDecide && status.rights.includes('decide');
    return withNextAct(isDecider ? withDecideTools(status) : status, place.runnable);
  };
  server.registerTool(
    'agent_list',
    RUN_TOOLS.agent_list,
    tool(async () => {
      const { agents } = await handlers.listAgents({}, caller);
      const startable = agents.filter(({ rights }) => rights.includes('start'));
      const names = new Set(startable.map(({ name }) => name));
      const served = place.agents.filter(({ name }) => names.has(name));
      return toolResult({ agents: served.map(toListedAgent) });
    }),
  );
  server.registerTool(
    'agent_start',
    RUN_TOOLS.agent_start,
    tool(async ({ operation_id: operationKey, ...given }) => {
      return toolResult(await handlers.startRun(given, { ...caller, operationKey }));
    }),
  );
  server.registerTool(
    'agent_status',
    RUN_TOOLS.agent_status,
    tool(async ({ id }) => toolResult(toStatusAnswer(await readStatus(id), place.runnable))),
  );
  server.registerTool(
    'agent_result',
    RUN_TOOLS.agent_result,
    tool(async ({ id, wait_seconds: wait = WAIT_SECONDS }, { mcpReq }) => {
      const signal = AbortSignal.any([caller.signal, mcpReq.signal]);
      const now = await handlers.getRun({ run: id }, caller);
      if (!isOpenStatus(now.status) && now.outcome !== null) {
        return toolResult(endedAnswer(id, now.outcome));
      }
      const options = { known: now, signal };
      const outcome = await resultUnlessResting(place.client, options, async (until) => {
        return (await handlers.getResult({ run: id, wait }, { ...caller, signal: until })).outcome;
      });
      if (outcome !== null) return toolResult(endedAnswer(id, outcome));
      return toolResult(unfinishedAnswer(await readStatus(id), place.runnable));
    }),
  );
  server.registerTool(
    'agent_send',
    RUN_TOOLS.agent_send,
    tool(async ({ id, message, operation_id: operationKey, steer }) => {
      const said = { run: id, message, ...(steer === true && { mode: 'steer' as const }) };
      const sent = await handlers.sendMessage(said, { ...caller, operationKey });
      const { delivered } = sent;
      return toolResult({ id, delivered, turn: sent.delivered ? sent.turn : null });
    }),
  );
  server.registerTool(
    'agent_cancel',
    RUN_TOOLS.agent_cancel,
    tool(async ({ id, turn }) => {
      const { status } = await handlers.getRun({ run: id }, caller);
      if (!isOpenStatus(status)) throw nothingToCancel(id);
      await handlers.cancelRun({ run: id, ...(turn !== undefined && { turn }) }, caller);
      return toolResult({ id, cancelled: turn === undefined ? 'run' : 'turn' });
    }),
  );
  server.registerTool(
    'agent_close',
    RUN_TOOLS.agent_close,
    tool(async ({ id }) => {
      await handlers.closeRun({ run: id }, caller);
      return toolResult({ id, closed: true });
    }),
  );
}

/** Adds the tools that list requests and decide about them. */
function addDecideTools(server: McpServer, parts: ToolParts): void {
  const { place, handlers, caller } = parts;
  const tool = answering(parts);
  server.registerTool(
    'list_requests',
    RUN_TOOLS.list_requests,
    tool(async ({ id }) => {
      await openRun(place, { principal: caller.principal, right: SEES_REQUESTS, run: id });
      const { pending } = await place.api.status(id);
      const requests = await withAllArguments(listedRequests(pending), place.blobs);
      return toolResult({
        id,
        requests: requests.map((one) => shownToModel(id, one, place.runnable)),
      });
    }),
  );
  server.registerTool(
    'decide',
    RUN_TOOLS.decide,
    tool(async ({ id, ...given }) => {
      const as = await decisionNamed(given, async () => {
        await openRun(place, { principal: caller.principal, right: 'decide', run: id });
        return (await place.api.status(id)).pending;
      });
      const decisions = [{ ...given, as }];
      const { receipts } = await handlers.decide({ run: id, decisions }, caller);
      const [receipt] = receipts;
      return toolResult({ id, request: given.request, checking: receipt?.checking === true });
    }),
  );
}
