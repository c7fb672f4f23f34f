import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { RetrieveQuery, Retriever } from '../agents/retriever.js';
import type { RetrievedDocument } from '../core/documents.js';
import type { ActivityProblem } from '../core/failure.js';
import type { PromptMessage } from '../core/transcript/messages.js';
import { chain, promptOf } from '../core/transcript/transcript.js';
import { normalizeError } from '../tools/result/normalize-error.js';
import type { RetrieveInput, RetrieveResult } from '../core/contract.js';
import type { ActivityDependencies } from './dependencies.js';
import { keepDocuments, MOST_DOCUMENTS, newDocuments } from './record-documents.js';
import { withHeartbeat } from './heartbeat.js';
import { block } from './tool/prepare-call.js';
import { rebuildPrompt } from './model/rebuild-prompt.js';
import { runContext } from './run-context.js';
import { needingStorage } from './storage.js';
import { settledValue } from './tool/run-bounded.js';
import type { PromptName } from './model/transcript-cache.js';
import { logOf, runOf } from './tool/user-function.js';

/** A function that throws this often, or gives what is no document, is not asked again. */
const ATTEMPTS = 3;
const READ_ON = 'read_result';

/** Asks the agent's `retrieve` for the documents of a turn; what it names is read, never carried. */
export async function retrieveDocuments(
  deps: ActivityDependencies,
  input: RetrieveInput,
): Promise<RetrieveResult> {
  const context = Context.current();
  return await withHeartbeat(
    context,
    () => undefined,
    async () => {
      const { pinned, name, messages, userContext } = await needingStorage(input, async () => ({
        ...(await rebuildPrompt(deps, context, input)),
        userContext: await runContext(input, deps.blobs),
      }));
      const { definition, agent } = pinned;
      const retriever = agent?.retrieve;
      if (!retriever) {
        const message = `agent "${definition.name}" has no retrieve function on this worker; deploy it again, or cancel the run`;
        throw block(context, input, { reason: 'tool_missing', message });
      }
      const timeoutMs = definition.retrieve?.timeoutMs ?? retriever.timeoutMs;
      const query = queryOf(messages, input.asked);
      const found = await patiently(context, definition.name, async () => {
        const how = { ...retriever, timeoutMs, name: `retrieve of agent "${definition.name}"` };
        const given = await ask(context, how, query, {
          context: userContext,
          run: { ...runOf(context.info), turn: input.turn },
          log: logOf(context),
        });
        return newDocuments(given, messages);
      });
      const readable = definition.tools.some((tool) => tool.name === READ_ON);
      const documents = await keepDocuments(found, { blobs: deps.blobs, readable });
      note(deps, name, documents);
      return { documents };
    },
  );
}

function queryOf(messages: readonly PromptMessage[], asked: number): RetrieveQuery {
  const query = messages
    .slice(-asked)
    .map(({ text }) => text)
    .join('\n\n');
  // A copy: what a function does to it stays its own.
  return { query, messages: structuredClone(messages), limit: MOST_DOCUMENTS };
}

/** Asks under the clock and the activity's cancellation, even a function that listens to neither. */
async function ask(
  context: Context,
  { find, timeoutMs, name }: Retriever & { readonly name: string },
  query: RetrieveQuery,
  told: Omit<Parameters<Retriever['find']>[1], 'signal'>,
): Promise<unknown> {
  return await settledValue(async (signal) => await find(query, { ...told, signal }), {
    name,
    timeoutMs,
    cancelled: context.cancellationSignal,
    late: () => new Error(`it did not end within ${timeoutMs} ms`),
  });
}

/** The last failure is told to the workflow; those before it are Temporal's to try again. */
async function patiently<T>(context: Context, agent: string, find: () => Promise<T>): Promise<T> {
  try {
    return await find();
  } catch (thrown) {
    context.cancellationSignal.throwIfAborted();
    const { attempt } = context.info;
    const message = `retrieve of agent "${agent}": ${normalizeError(thrown).message}`;
    context.log.warn('retrieve failed', { attempt, message });
    const problem: ActivityProblem = { type: 'failed', reason: 'error', message };
    const last = attempt >= ATTEMPTS;
    throw ApplicationFailure.create({
      type: 'RetrieveFailed',
      message,
      nonRetryable: last,
      ...(last && { details: [problem] }),
    });
  }
}

/** The workflow will append them here: the model call that follows finds them in memory. */
function note(
  { transcripts }: ActivityDependencies,
  { run, upTo, head }: PromptName,
  documents: readonly RetrievedDocument[],
): void {
  let link = head;
  for (const [index, { text }] of documents.entries()) {
    const message = promptOf({ role: 'user', text });
    transcripts.noteReply({ run, upTo: upTo + index, head: link }, message);
    link = chain(link, message);
  }
}
