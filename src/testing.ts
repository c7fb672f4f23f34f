import type { Agent } from './agents/agent.js';
import type {
  PromptName,
  PromptOutput,
  StartPrompt,
  TypedInput,
} from './core/definition/agent-types.js';
import type { Json } from './core/text/json.js';
import type { MemoryRun } from './memory/memory-run.js';
import type { MemoryOptions } from './memory/run-in-memory.js';
import type { TestServer } from './server/test-server.js';
import type { ReplayResult } from './worker/bundle.js';

// A scripted model
export { scriptedModel, type ScriptedModel, type ScriptStep } from './testing/script.js';

// Replies, for the scripted model and for the server
export {
  replyCall,
  replyCalls,
  replyCompletion,
  replyComputer,
  replyError,
  replyRaw,
  replyRefusal,
  replyReset,
  replyText,
  type AnswerReply,
  type CompletionOptions,
  type CutHow,
  type Delivery,
  type Reply,
  type ScriptedCall,
  type SseOptions,
  type Step,
  type StubToken,
} from './testing/replies.js';

// Tests of tools, and of the functions of graphs
export {
  nodeContext,
  toolContext,
  type TestNodeContext,
  type TestToolContext,
  type NodeContextOptions,
  type ToolContextOptions,
} from './testing/tool-context.js';

// A run without a server
export {
  after,
  answer,
  approve,
  approveSome,
  cancelRun,
  cancelTurn,
  closeRun,
  decision,
  deny,
  edit,
  kill,
  noDecision,
  pauseRun,
  resumeRun,
  send,
  setRunLimits,
  type Action,
  type Reaction,
  type ScriptedDecision,
  type ScriptedMessage,
} from './testing/actions.js';
export type { MemoryHistory, MemoryRun } from './memory/memory-run.js';
export type { MemoryModel, MemoryOptions } from './memory/run-in-memory.js';
export type { MemoryEffect } from './memory/observe.js';
export type { History } from './temporal/server-answers.js';
export { type Fault, type FaultOptions, withFaults } from './memory/faults.js';
export type { MadeDecision, MemoryRequest, Reactions } from './memory/script.js';

/**
 * Runs an agent in this process: without a server, a worker, or a socket, and without waiting. The workflow
 * code, the activities, and all rules are those of a real run; only time is skipped. People, messages,
 * and faults are scripted. Resolves when the run has ended, or when an open run waits for a message. Rejects
 * with an `InputError` if the options are invalid, and with an `Error` if the run waits for something
 * that is not scripted, or has not reached a place at which something was to happen.
 *
 * @example
 * ```ts
 * import { defineAgent, defineTool } from 'perdure';
 * import { deny, replyCall, replyText, runInMemory } from 'perdure/testing';
 * import { z } from 'zod';
 *
 * const refund = defineTool({
 *   name: 'refund',
 *   description: 'Pays money back.',
 *   effect: 'once',
 *   approval: 'always',
 *   input: z.object({ order: z.int(), euros: z.number() }),
 *   execute: () => 'paid',
 * });
 * const desk = defineAgent({ name: 'desk', instructions: 'Help.', tools: [refund] });
 *
 * const run = await runInMemory(desk, {
 *   message: 'Refund order 17',
 *   model: [replyCall('refund', { order: 17, euros: 60 }), replyText('Sorry, no.')],
 *   on: { request: { refund: deny({ note: 'too much' }) } },
 * });
 * if (run.effects.length > 0) throw new Error('it was paid');
 * console.log(run.outcome.answer);
 * ```
 */
export async function runInMemory<
  Output = Json,
  Input = unknown,
  Prompts = unknown,
  const Name extends PromptName<Prompts> = never,
  Args = unknown,
>(
  agent: Agent<Output, Prompts, Args> & TypedInput<Input>,
  options: MemoryOptions<NoInfer<Input>, NoInfer<Args>> & StartPrompt<NoInfer<Prompts>, Name>,
): Promise<MemoryRun<PromptOutput<Prompts, Name, Output>>> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- checked by the agent itself
  const { runScript } = await import('./memory/run-in-memory.js');
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the fields of an `input` are JSON
  const given = options as MemoryOptions;
  const run: unknown = await runScript(agent, given);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- checked by the agent itself
  return run as MemoryRun<PromptOutput<Prompts, Name, Output>>;
}

// A server in the wire formats of providers
export { startStub, type Stub, type StubDemand, type StubOptions } from './testing/stub-server.js';
export type { Barrier } from './testing/play.js';
export type { RequestEnd, StubApi, StubRequest, StubMessage } from './testing/wire-input.js';
export type { Answer } from './testing/script.js';

// Runs that happened, as test cases
export { recordRun, type RecordOptions } from './recordings/record-run.js';
export {
  readRecording,
  writeRecording,
  type ReadRecordingOptions,
  type WriteRecordingOptions,
} from './recordings/recording-files.js';
export type {
  RecordedFact,
  RecordedRequest,
  RecordedRun,
  TurnOutput,
  Recording,
} from './recordings/recording.js';
export type { Spent } from './core/state/turn.js';

export {
  evaluate,
  type CandidateRun,
  type EvalProgress,
  type EvalRun,
  type EvaluateOptions,
  type EvaluatedCase,
  type Evaluation,
  type Score,
  type ScoredRun,
  type Scorer,
  type Scorers,
} from './recordings/evaluate.js';
export type { EvalGates, GateResult } from './recordings/eval-gates.js';
export { rerun, type CandidateModel, type Rerun, type RerunOptions } from './recordings/rerun.js';
export type { ComparedCall } from './recordings/divergence-text.js';
export type { Divergence } from './recordings/divergence.js';
export type { LiveTools } from './recordings/recorded-tools.js';

// A Temporal server
export type { TestServer } from './server/test-server.js';

/**
 * Starts an embedded Temporal server for tests: with a fresh database, on a free port, and silent.
 * It ends with `close`, and with this process, however the process ends. Several test files can have
 * one each at the same time, or share one. Rejects
 * with a `NoServerError` (`no_server`) if no Temporal CLI can be found or downloaded.
 *
 * @example
 * ```ts
 * import { createClient, createWorker, defineAgent, defineConfig } from 'perdure';
 * import { replyText, scriptedModel, startTestServer } from 'perdure/testing';
 *
 * await using server = await startTestServer();
 * const { address, home } = server;
 * const clerk = defineAgent({ name: 'clerk', instructions: 'Answer.', model: 'script' });
 * const models = { script: scriptedModel([replyText('Hello.')]) };
 * const config = defineConfig({ agents: [clerk], models });
 * const worker = await createWorker({ config, address, home });
 * await using client = await createClient({ config, address, home });
 * const { answer } = await client.run(clerk, 'Hi');
 * if (answer !== 'Hello.') throw new Error(`unexpected answer ${answer}`);
 * await worker.shutdown();
 * ```
 */
export async function startTestServer(): Promise<TestServer> {
  const [{ startTestServer: start }, { prepareTestRuntime }] = await Promise.all([
    import('./server/test-server.js'),
    import('./worker/log.js'),
  ]);
  // Workers of this process then log only what is wrong, unless it has a runtime already.
  prepareTestRuntime();
  return await start();
}

// Histories
export type { ReplayResult } from './worker/bundle.js';

/**
 * Replays an exported history with the installed version of perdure, without a server. `text` is
 * what `perdure export` writes. Returns `same` if a run in flight could continue with this version;
 * any other result contains the reason. Keep histories of your runs as fixtures, and replay them
 * after each update.
 *
 * @example
 * ```ts
 * import { readFile } from 'node:fs/promises';
 * import { replayHistory } from 'perdure/testing';
 *
 * const replayed = await replayHistory(await readFile('histories/order-desk.json', 'utf8'));
 * if (replayed.type !== 'same') throw new Error(`${replayed.type}: ${replayed.reason}`);
 * ```
 */
export async function replayHistory(text: string): Promise<ReplayResult> {
  const { replayHistory: replay } = await import('./worker/bundle.js');
  return await replay(text);
}
