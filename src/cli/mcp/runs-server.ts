import { McpServer } from '@modelcontextprotocol/server';
import type { Client } from '@temporalio/client';
import { z } from 'zod';
import { readStatus } from '../../client/below.js';
import { agentProblem, servedAgentProblem } from '../../client/fork-run.js';
import { withAllArguments } from '../../client/requests.js';
import { nameRun } from '../../client/run-ids.js';
import { resolveOpen } from '../../client/resolve.js';
import { toRunStatus, waitForResult } from '../../client/status.js';
import { resultUnlessResting } from '../../client/until-resting.js';
import { IdTakenError, InputError } from '../../core/errors.js';
import type { RunInput } from '../../core/input/input.js';
import { type RunStatus, isOpenStatus } from '../../core/state/status.js';
import { canonicalJson, sha256Hex } from '../../core/text/json.js';
import { cancelRun } from '../../client/control.js';
import { describeRun, readRun } from '../../history/read-run.js';
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
} from '../../http/mcp-tools.js';
import {
  MAX_WAIT_SECONDS,
  decisionNamed,
  inCancelTerms,
  inToolTerms,
  nothingToCancel,
  refuseInOwnWords,
  refuseUnknownTools,
} from '../../http/input-fields.js';
import { type Runnable, runnableStatus } from '../../client/runnable-texts.js';
import { shownToModel } from '../../http/views.js';
import { ownVersion } from '../../storage/files.js';
import { findServedAgent } from '../../temporal/pollers.js';
import { askRun } from '../../updates/ask.js';
import { cancelTurn, closeRun } from '../../updates/decide.js';
import { createRunInput, startRun } from '../../updates/start.js';
import { osUser } from '../input/option-parsers.js';
import { errorCode, runnableTextElsewhere } from '../reports/next-command.js';
import { show } from '../../core/text/text.js';
import {
  type RunsAccess,
  UPDATE_TIMEOUT,
  mcpClaim,
  ownedMemo,
  requireOwnRun,
  servedRun,
} from './owner.js';

/** Makes failed results of errors, whose commands can be pasted in the client's shell. */
const failuresOf = (access: RunsAccess): ReturnType<typeof failuresAs> =>
  failuresAs((error) => ({
    message: runnableTextElsewhere(access, error instanceof Error ? error.message : String(error)),
    code: errorCode(error),
  }));

/** Makes the commands of a text work in the shell of the client. */
const runnableOf =
  (access: RunsAccess): Runnable =>
  (text) =>
    runnableTextElsewhere(access, text);

/** Adds the tools that read runs. They need no worker. */
function addReadTools(server: McpServer, access: RunsAccess): void {
  const withErrorCode = failuresOf(access);
  const { archive } = access;
  const runnable = runnableOf(access);
  const readNow = async (named: string): Promise<RunStatus> => {
    const { client, id } = await servedRun(access, named);
    const read = await readRun(client, id, { archive });
    const status = await readStatus(client, read, Date.now(), osUser());
    const shown = access.canDecide ? withDecideTools(status) : status;
    return withNextAct(runnableStatus(shown, runnable), runnable);
  };
  server.registerTool(
    'agent_status',
    RUN_TOOLS.agent_status,
    withErrorCode(async ({ id }) => toolResult(toStatusAnswer(await readNow(id), runnable))),
  );
  server.registerTool(
    'agent_result',
    RUN_TOOLS.agent_result,
    withErrorCode(async ({ id: named, wait_seconds: seconds = WAIT_SECONDS }, { mcpReq }) => {
      const { client, id } = await servedRun(access, named);
      const now = await readNow(id);
      if (!isOpenStatus(now.status) && now.outcome !== null) {
        return toolResult(endedAnswer(id, now.outcome));
      }
      const waited = Math.min(seconds, MAX_WAIT_SECONDS);
      const outcome = await withinSeconds(waited, mcpReq.signal, (within) =>
        resultUnlessResting(client, { known: now, signal: within }, (signal) =>
          waitForResult(client, id, { signal, archive }),
        ),
      );
      return toolResult(
        outcome === null ? unfinishedAnswer(await readNow(id), runnable) : endedAnswer(id, outcome),
      );
    }),
  );
}

/** Runs abortable work for a limited time. Returns null on timeout; throws if the caller aborts. */
async function withinSeconds<T>(
  seconds: number,
  caller: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T | null> {
  const timeout = AbortSignal.timeout(seconds * 1_000);
  try {
    return await work(AbortSignal.any([timeout, caller]));
  } catch (error) {
    caller.throwIfAborted();
    if (timeout.aborted && error === timeout.reason) return null;
    throw error;
  }
}

/** Adds the tools that list and start agents. */
function addStartTools(server: McpServer, access: RunsAccess): void {
  const { agents, taskQueue, client, ensureWorker, owner } = access;
  const withErrorCode = failuresOf(access);
  const names = agents.map(({ name }) => name).join(', ');
  /** A worker elsewhere may have other agents. */
  const problemElsewhere = async (agent: string): Promise<string | null> => {
    const served = await findServedAgent(await client(), { taskQueue, agent });
    return servedAgentProblem(agent, served, taskQueue);
  };
  server.registerTool('agent_list', RUN_TOOLS.agent_list, () =>
    toolResult({ agents: agents.map(toListedAgent) }),
  );
  server.registerTool(
    'agent_start',
    {
      ...RUN_TOOLS.agent_start,
      description: `${RUN_TOOLS.agent_start.description} Available agents: ${names || 'none'}.`,
    },
    withErrorCode(async ({ agent, operation_id: operation, ...given }) => {
      const input = createRunInput(agent, { by: mcpClaim(), ...given });
      const isHosting = await ensureWorker(taskQueue);
      const isKnown = agents.some(({ name }) => name === agent);
      if (!isKnown && isHosting) {
        throw new InputError(`agent: there is no agent ${show(agent)}; agent_list lists them`);
      }
      // A worker elsewhere may have another version of an agent, but hardly one that reads less.
      const problem = isKnown ? agentProblem(agents, input) : await problemElsewhere(agent);
      if (problem !== null) throw new InputError(inToolTerms(problem));
      const options = { operationId: operation, taskQueue, owner: await owner() };
      return toolResult({ ...(await startOnce(await client(), input, options)) });
    }),
  );
}

interface StartedOnce {
  readonly id: string;
  /** The operation had already started the run, which may have ended by now. */
  readonly repeated: boolean;
}

const ID_DIGITS = 24;

/** Returns the id of the run that an operation of this owner starts. It is always the same. */
function runIdFor(owner: string, operation: string): string {
  return `mcp-${sha256Hex(`${owner} ${operation}`).slice(0, ID_DIGITS)}`;
}

/**
 * Starts the run of an operation, or finds the run that the operation has already started. Throws
 * if the operation started another run: a reused id must not look like a repeated request.
 */
async function startOnce(
  client: Client,
  input: RunInput,
  options: { operationId: string; taskQueue: string; owner: string },
): Promise<StartedOnce> {
  const { operationId: operation, taskQueue, owner } = options;
  const name = await nameRun(client, { id: runIdFor(owner, operation), agent: input.agent });
  const { id } = name;
  try {
    await startRun(client, input, { ...name, taskQueue, memo: ownedMemo(owner, id) });
    return { id, repeated: false };
  } catch (error) {
    if (!IdTakenError.isInstance(error)) throw error;
  }
  await requireOwnRun(client, { run: id, owner });
  const existing = await readRun(client, id);
  const before = existing.view.input;
  // The input of a later segment may have none of these fields.
  const isSame =
    (before?.message ?? input.message) === input.message &&
    (['input', 'args'] as const).every(
      (field) =>
        canonicalJson(before?.[field] ?? input[field] ?? {}) === canonicalJson(input[field] ?? {}),
    );
  if (existing.agent === input.agent && isSame) return { id, repeated: true };
  throw new IdTakenError(
    `operation_id: expected a new id, got ${show(operation)}, which started run ${id} ` +
      'for another request; choose a new one',
  );
}

/** The request that a message answers. Only with the option that lets the client decide. */
const answered = z
  .strictObject({ request: z.string().min(1), digest: z.string().min(1) })
  .optional()
  .describe('only to decide with this message: the request and its digest, from list_requests');

const decidingSend = RUN_TOOLS.agent_send.inputSchema.extend({ answers: answered });
type SendInput = Omit<z.infer<typeof decidingSend>, 'answers'> &
  Partial<Pick<z.infer<typeof decidingSend>, 'answers'>>;

/** Adds the tools that send messages to runs, cancel them, and close them. */
function addControlTools(server: McpServer, access: RunsAccess): void {
  const withErrorCode = failuresOf(access);
  const { ensureWorker, canDecide, archive } = access;
  server.registerTool(
    'agent_send',
    {
      ...RUN_TOOLS.agent_send,
      inputSchema: canDecide ? decidingSend : RUN_TOOLS.agent_send.inputSchema,
    },
    withErrorCode(async ({ id: named, message, operation_id: operation, ...said }: SendInput) => {
      const { steer, answers } = said;
      const { client, id } = await servedRun(access, named);
      await ensureWorker(await taskQueueOf(client, id));
      const ask = {
        id: operation,
        message,
        by: mcpClaim(),
        // Without what it answers, a message decides nothing.
        answers: (canDecide && answers) || false,
        ...(steer && { mode: 'steer' as const }),
      };
      const sent = await askRun(client, id, ask, UPDATE_TIMEOUT).catch(rethrowInToolTerms);
      const { delivered } = sent;
      return toolResult({ id, delivered, turn: sent.delivered ? sent.turn : null });
    }),
  );
  server.registerTool(
    'agent_cancel',
    RUN_TOOLS.agent_cancel,
    withErrorCode(async ({ id: named, turn }) => {
      const { client, id } = await servedRun(access, named);
      if (turn !== undefined) {
        await ensureWorker(await taskQueueOf(client, id));
        await cancelTurn(client, id, { turn, by: mcpClaim(), ...UPDATE_TIMEOUT }).catch(
          (error: unknown) => rethrowIn(inCancelTerms, error),
        );
        return toolResult({ id, cancelled: 'turn' });
      }
      // A run that cannot be read can still be canceled.
      const read = await readRun(client, id, { archive }).catch(() => null);
      if (read !== null && !isOpenStatus(toRunStatus(read, Date.now()).status)) {
        throw nothingToCancel(id);
      }
      await cancelRun(client, id, mcpClaim());
      return toolResult({ id, cancelled: 'run' });
    }),
  );
  server.registerTool(
    'agent_close',
    RUN_TOOLS.agent_close,
    withErrorCode(async ({ id: named }) => {
      const { client, id } = await servedRun(access, named);
      await ensureWorker(await taskQueueOf(client, id));
      await closeRun(client, id, { by: mcpClaim(), ...UPDATE_TIMEOUT }).catch(rethrowInToolTerms);
      return toolResult({ id, closed: true });
    }),
  );
}

async function taskQueueOf(client: Client, id: string): Promise<string> {
  return (await describeRun(client, id)).taskQueue;
}

/** Replaces the field names of a run's input by those of the tools. */
function rethrowInToolTerms(error: unknown): never {
  rethrowIn(inToolTerms, error);
}

function rethrowIn(terms: (message: string) => string, error: unknown): never {
  if (!(error instanceof Error)) throw error;
  throw new Error(terms(error.message), { cause: error });
}

/**
 * Adds the tools that list requests and decide about them, for the runs that the server serves.
 * They exist only if an option enables them, because they let the MCP client approve.
 */
function addDecideTools(server: McpServer, access: RunsAccess): void {
  const withErrorCode = failuresOf(access);
  const runnable = runnableOf(access);
  server.registerTool(
    'list_requests',
    RUN_TOOLS.list_requests,
    withErrorCode(async ({ id: named }) => {
      const { client, id } = await servedRun(access, named);
      const { pending } = toRunStatus(await readRun(client, id), Date.now());
      const requests = await withAllArguments(listedRequests(pending), access.blobs);
      return toolResult({ id, requests: requests.map((one) => shownToModel(id, one, runnable)) });
    }),
  );
  server.registerTool(
    'decide',
    RUN_TOOLS.decide,
    withErrorCode(async ({ id: named, ...given }) => {
      const { client, id } = await servedRun(access, named);
      const as = await decisionNamed(
        given,
        async () => toRunStatus(await readRun(client, id), Date.now()).pending,
      );
      await access.ensureWorker((await describeRun(client, id)).taskQueue);
      const options = { by: mcpClaim(), ...UPDATE_TIMEOUT };
      const [receipt] = await resolveOpen(client, id, { ...given, as }, options);
      return toolResult({ id, request: given.request, checking: receipt?.checking === true });
    }),
  );
}

/** Creates an MCP server whose tools start runs of agents, send them messages, and read them. */
export function runsServer(access: RunsAccess): McpServer {
  const server = new McpServer({ name: 'perdure', version: ownVersion() }, UNCHANGING);
  refuseInOwnWords(server, (message) => failedResult(message, 'input'));
  addStartTools(server, access);
  addReadTools(server, access);
  addControlTools(server, access);
  if (access.canDecide) addDecideTools(server, access);
  refuseUnknownTools(server, 'the option --decide of the server');
  return server;
}
