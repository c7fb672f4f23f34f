import { shownTools, withInvocations } from '../../core/catalog/catalog.js';
import { COMPACTION_INSTRUCTIONS, renderForCompaction } from '../../core/compaction.js';
import type { CallModelInput } from '../../core/contract.js';
import type { AgentDefinition } from '../../core/definition/definition.js';
import type { BlobRef, PromptMessage } from '../../core/transcript/messages.js';
import { takeTurns } from '../../core/transcript/transcript.js';
import { ModelError } from '../../models/model-error.js';
import type { ModelRequest } from '../../models/model.js';
import { toParameters } from '../../models/parameters.js';
import { attachedText, NotAttachedError } from '../../storage/attached-text.js';
import type { BlobStore } from '../../storage/blob-store.js';
import { planNode, type PinnedAgent } from '../definitions.js';
import { answerSchema } from './answer.js';
import { classRequest } from './classification.js';
import { planFormat } from './plan-format.js';
import type { Prompt } from './rebuild-prompt.js';
import { decisionRequest } from './schema-decision.js';

/** The share of a model's window that the messages of a summary may fill. */
const SUMMARY_SHARE = 0.7;
const CHARACTERS_PER_TOKEN = 3;
/** Maximum characters of the messages of a summary if the model's window is unknown. */
const DEFAULT_CHARACTERS = 200_000;
/** Minimum characters of one message after it is cut. */
const MIN_CHARACTERS = 400;

/** Creates the request of a model call: a pure function of the prompt and the activity's input. */
export function createModelRequest(
  { blobs }: { readonly blobs: BlobStore },
  { run, pinned, messages }: Pick<Prompt, 'run' | 'pinned' | 'messages'>,
  input: CallModelInput,
): ModelRequest {
  const { definition } = pinned;
  const parameters = toParameters(input.without ?? []);
  const request = {
    ...baseRequest(pinned, messages, input),
    // Parameters that the server refused earlier in this run are omitted.
    ...(parameters.length > 0 && { without: parameters }),
  };
  return withFiles(withOutputForm(request, definition, input), { run, blobs });
}

function baseRequest(
  pinned: PinnedAgent,
  messages: readonly PromptMessage[],
  input: CallModelInput,
): ModelRequest {
  const { definition } = pinned;
  const { model, settings } = definition;
  if (input.compact !== undefined) {
    const text = renderWithin(messages.slice(0, input.compact), input);
    return {
      model,
      instructions: COMPACTION_INSTRUCTIONS,
      messages: [{ role: 'user', text }],
      tools: [],
      toolChoice: 'none',
      settings,
    };
  }
  const isPlan = planNode(pinned)?.planning === 'schema';
  const responseFormat = isPlan ? planFormat(definition.tools) : answerSchema(definition);
  return {
    model,
    instructions: definition.instructions,
    messages: takeTurns(withInvocations(definition, messages)),
    tools: shownTools(definition),
    toolChoice: input.closing ? 'none' : definition.toolChoice,
    ...(definition.texts?.demandCall !== undefined && { demandCall: definition.texts.demandCall }),
    settings: capSettings(definition, input),
    ...(responseFormat && { responseFormat }),
  };
}

/**
 * Returns the request for a class or for a decision as JSON, if the agent's replies have that form.
 */
function withOutputForm(
  request: ModelRequest,
  definition: AgentDefinition,
  { compact }: CallModelInput,
): ModelRequest {
  if (compact !== undefined) return request;
  if (definition.output?.type === 'classes') return classRequest(request, definition.output);
  return definition.decide === 'schema' ? decisionRequest(request, definition) : request;
}

/**
 * Renders messages for a summary. Long texts are cut as needed to fit all of them into the model's
 * window.
 */
function renderWithin(messages: readonly PromptMessage[], { window }: CallModelInput): string {
  const room =
    window === undefined ? DEFAULT_CHARACTERS : window * SUMMARY_SHARE * CHARACTERS_PER_TOKEN;
  const whole = renderForCompaction(messages);
  if (whole.length <= room) return whole;
  const each = Math.max(MIN_CHARACTERS, Math.floor(room / messages.length / 2));
  return renderForCompaction(
    messages.map((message) => ({ ...message, text: headAndTail(message.text, each) })),
  );
}

/** Cuts a text: three quarters of the result are its beginning, and one quarter is its end. */
function headAndTail(text: string, characters: number): string {
  if (text.length <= characters) return text;
  const head = Math.floor(characters * 0.75);
  const left = text.length - characters;
  return `${text.slice(0, head)}\n[… ${left} characters left out …]\n${text.slice(head - characters)}`;
}

function capSettings({ settings }: AgentDefinition, { maxOutputTokens }: CallModelInput) {
  if (maxOutputTokens === undefined) return settings;
  const most = Math.min(maxOutputTokens, settings.maxOutputTokens ?? Infinity);
  return { ...settings, maxOutputTokens: most };
}

/**
 * Adds the function that reads blobs, if a message refers to one. The sender of a message chose its
 * attachments, so they must be attached in this run. All other references are from workers.
 */
function withFiles(
  request: ModelRequest,
  { run, blobs }: { readonly run: string; readonly blobs: BlobStore },
): ModelRequest {
  const { messages } = request;
  const hasReferences = messages.some((message) =>
    message.role === 'assistant' ? message.provider?.blob : message.attachments,
  );
  if (!hasReferences) return request;
  const attached = new Set(messages.flatMap(attachedHashes));
  const files = async (blob: BlobRef): Promise<string> =>
    attached.has(blob.sha256)
      ? await attachedText(blobs, run, blob).catch(throwModelError)
      : await blobs.get(blob);
  return { ...request, files };
}

function attachedHashes(message: PromptMessage): readonly string[] {
  if (message.role !== 'user') return [];
  return (message.attachments ?? []).flatMap((each) => ('blob' in each ? each.blob.sha256 : []));
}

function throwModelError(error: unknown): never {
  if (!(error instanceof NotAttachedError)) throw error;
  throw new ModelError(error.message, { kind: 'request', type: 'bad_attachment', cause: error });
}
