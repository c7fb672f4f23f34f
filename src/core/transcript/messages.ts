import type { Verdict } from '../definition/rules.js';
import { type JsonObject, isObject, tooLong } from '../text/json.js';
import { show } from '../text/text.js';

/**
 * One of several messages that are sent as one: a person's text, or an assistant's earlier reply.
 */
export interface SuppliedMessage {
  readonly role: 'user' | 'assistant';
  readonly text: string;
}

const MAX_MESSAGES = 100;
const EXAMPLE = '[{"role": "user", "text": "Hello"}]';

/** Returns what is wrong with several messages that are sent as one, or null. */
function checkMessages(value: unknown): string | null {
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_MESSAGES) {
    const got = Array.isArray(value) ? `${value.length}` : show(value);
    return `messages: expected a list of 1–${MAX_MESSAGES} messages, got ${got}; give for example ${EXAMPLE}`;
  }
  const found = value.map((one: unknown, index) => messageProblem(one, `messages[${index}]`));
  const problem = found.find((one) => one !== null);
  if (problem !== undefined) return problem;
  const messages = value.filter(isObject);
  const ends = [0, messages.length - 1].find((index) => messages[index]?.['role'] !== 'user');
  if (ends !== undefined) {
    return `messages[${ends}].role: expected "user" for the first and the last message, got "assistant"`;
  }
  const sum = messages.reduce((all, { text }) => all + String(text).length, 0);
  return tooLong('messages', sum);
}

function messageProblem(one: unknown, at: string): string | null {
  if (!isObject(one)) return `${at}: expected an object, got ${show(one)}; give ${EXAMPLE}`;
  const { role, text, ...rest } = one;
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined)
    return `${at}.${unknown}: expected one of role, text; correct its name, or remove it`;
  if (role !== 'user' && role !== 'assistant') {
    return `${at}.role: expected "user" or "assistant", got ${show(role)}; instructions belong to the agent`;
  }
  if (typeof text === 'string' && text.trim() !== '') return null;
  return `${at}.text: expected a text, got ${show(text)}`;
}

/** Returns why `messages` conflicts with other fields that supply a text, or null. */
export function suppliedProblem(value: Record<string, unknown>): string | null {
  const { messages, message, prompt, input } = value;
  if (messages === undefined) return null;
  const others = { message: message === '' ? undefined : message, prompt, input };
  const other = Object.entries(others).find(([, one]) => one !== undefined);
  if (other === undefined) return checkMessages(messages);
  return `${other[0]}: cannot be combined with "messages"; remove one`;
}

/** Identifies a text in the blob store. A blob is addressed by its content, so it never changes. */
export interface BlobRef {
  /** SHA-256 of the UTF-8 bytes, hex. */
  readonly sha256: string;
  /** Size of the whole text in UTF-8 bytes. */
  readonly bytes: number;
}

/** Identifies the context of a run in the blob store. */
export interface ContextRef extends BlobRef {
  /** Workflow id of the run that owns it: this one, or the root of all its callers. */
  readonly root?: string;
}

/** An artifact as the worker records it: a tool's value that other calls can name. */
export interface CreatedArtifact {
  /** 1 to 64 characters of a–z, 0–9, `_`, and `-`. */
  readonly name: string;
  /** The value: text as it is, anything else as JSON. */
  readonly blob: BlobRef;
  /** For the model: `array of 300`, `object with keys …`. */
  readonly kind: string;
  /** The value is text. */
  readonly text?: true;
  /** One line by the tool's author. */
  readonly summary?: string;
}

/** An artifact of a run. */
export interface RunArtifact extends CreatedArtifact {
  /** The name from its tool, if `name` has a number because another value has that name. */
  readonly base?: string;
  /**
   * For an artifact from a message: number of the message that announced it. `tool` and `call` are
   * then empty.
   */
  readonly announcedBy?: number;
  /** The tool and the call that made it. */
  readonly tool: string;
  readonly call: string;
}

/**
 * An image or a file that belongs to a message. Attachments are explicit; paths and URLs in a text
 * are never attached. A blob holds the bytes as base64 text.
 */
export type Attachment =
  | {
      readonly type: 'image' | 'file';
      readonly blob: BlobRef;
      /** Such as `image/png` or `application/pdf`. */
      readonly mediaType: string;
      readonly name?: string;
    }
  /** Fetched by the model's provider, not by perdure. */
  | { readonly type: 'image'; readonly url: string };

/**
 * Why a call cannot be executed. The worker detects it in the model's reply, before anything runs.
 */
export interface CallProblem {
  readonly type: 'unknown_tool' | 'invalid_json' | 'invalid_arguments' | 'truncated';
  /** For the model: what is wrong, with the path, and the fix. */
  readonly message: string;
}

/** A provider's safety check of a call, in its own words. */
export interface SafetyCheck {
  readonly id: string;
  readonly code?: string;
  readonly message?: string;
}

/** What a tool's schema makes of the arguments of a call, as JSON. */
export interface ParsedArguments {
  /** Canonical JSON; a short placeholder if the real value is in `blob`. */
  readonly arguments: string;
  /** SHA-256 (hex) of the whole canonical JSON, before secrets were removed. */
  readonly digest: string;
  readonly blob?: BlobRef;
}

/** One tool call as the model requests it, before it has an id. */
export interface RequestedCall {
  readonly name: string;
  /**
   * The arguments, always valid JSON. If the real arguments are in `blob`, this is a short
   * placeholder that the model sees in later requests.
   */
  readonly arguments: string;
  /** SHA-256 (hex) of the canonical form of the real arguments. */
  readonly digest: string;
  readonly blob?: BlobRef;
  /**
   * What the tool gets, if its schema changes the arguments (defaults, conversions, transforms);
   * absent if the tool gets what was written.
   */
  readonly parsed?: ParsedArguments;
  readonly problem?: CallProblem;
  /** For people, made by the tool's `describe`; absent if the tool has none. */
  readonly summary?: string;
  /** Safety checks of the provider. Only a person may acknowledge them. */
  readonly safety?: readonly SafetyCheck[];
  /** The verdict of the rules and the tool on the call; absent if they allow it. */
  readonly verdict?: Verdict;
  /** The model made the call by `invoke_tool`; later requests show it in that form. */
  readonly via?: 'catalog';
}

/**
 * Parts of a reply, other than texts and calls, that its provider needs back in later requests,
 * such as reasoning and the provider's own searches. Only the provider's adapter can read them.
 */
export interface ProviderItems {
  /** The provider and the model; only they get the items. */
  readonly from: string;
  /** The items in the order of the reply. If they are large, `blob` has them as JSON instead. */
  readonly items?: readonly JsonObject[];
  readonly blob?: BlobRef;
}

/** A call with its id. */
export interface ToolCall extends RequestedCall {
  /** A person has changed the arguments before the call was executed. */
  readonly edited?: true;
  /**
   * Unique in the run: `call_<turn>_<step>_<index>`, or `call_f<fork>_…` in a forked run. It is not
   * the provider's id, which may repeat or be missing.
   */
  readonly id: string;
  /** The node of the graph that makes the call; absent for a call of a model. */
  readonly node?: string;
  /** Ids of calls of the same batch that must end first; absent if none remain. */
  readonly after?: readonly string[];
  /**
   * The places of the references among the arguments, if data was filled in that looks like one;
   * absent: each part that looks like a reference is one, as long as there is `after`.
   */
  readonly refs?: readonly (readonly (string | number)[])[];
  /**
   * The rules required approval of the call before its arguments were complete: its worker applies
   * them again.
   */
  readonly asks?: true;
  /** A person has confirmed the plan that the call is a part of, with these very arguments. */
  readonly confirmed?: true;
  /**
   * The call needed no approval, and a person saw it in a plan and confirmed the plan: the tool must
   * get what was shown.
   */
  readonly asShown?: true;
}

/** The place of a message in its run. */
export interface MessagePosition {
  /** Number of the message in the run, from 0, through all turns and segments. */
  readonly n: number;
  readonly turn: number;
  readonly step: number;
  /** Unix time in ms, by the workflow's clock. */
  readonly at: number;
}

/**
 * What of a message a provider has refused, or its filter has withheld. That part stays in the
 * transcript and leaves the prompt, because it would fail every later request.
 */
export type RefusedPart = 'message' | 'attachments';

/** A message to the model: from a person or program, from perdure, or a retrieved document. */
export interface UserMessage extends MessagePosition {
  readonly role: 'user';
  readonly text: string;
  readonly attachments?: readonly Attachment[];
  /**
   * `perdure`: written by the engine (the closing instruction, a summary), not by a person.
   * `retrieved`: a document that the agent's `retrieve` function has found. `graph`: the message of
   * a node to the graph's model.
   */
  readonly origin?: 'perdure' | 'retrieved' | 'graph';
  /** The node of the graph whose message it is. */
  readonly node?: string;
  /** Id and source of the document, if `retrieve` specifies them. */
  readonly document?: { readonly id?: string; readonly source?: string };
  /** The whole document, if the text is its head and tail. */
  readonly blob?: BlobRef;
  /** The sender's id of the message. */
  readonly id?: string;
  /** Who sent it: a claim of the sender. The model never sees it. */
  readonly by?: string;
  /** The interface that has verified `by`; absent: a claim. */
  readonly door?: string;
  /** The message stays verbatim when older messages are summarized. */
  readonly pinned?: true;
  /** The message is part of a side branch, so it is not in the canonical transcript. */
  readonly side?: true;
  readonly refused?: RefusedPart;
  /** For a summary: the messages that it replaces in the prompt, by `n`, inclusive. */
  readonly compacts?: { readonly from: number; readonly to: number };
}

/** A model's reply: text, calls, or both. `blob` has the whole text if `text` is its head and tail. */
export interface AssistantMessage extends MessagePosition {
  readonly role: 'assistant';
  /** The message is part of a side branch: a refused answer. */
  readonly side?: true;
  /**
   * The sender supplied this message as part of the conversation; no model wrote it in this run.
   */
  readonly supplied?: true;
  /**
   * `graph`: the answer of a graph's turn or of one of its nodes, which no model wrote as a message
   * of this run.
   */
  readonly origin?: 'graph';
  /** The node of the graph whose answer it is. */
  readonly node?: string;
  /**
   * The graph refused the messages of its turn: by `n`, inclusive. They and this message are in no
   * later prompt; summaries among them are.
   */
  readonly refuses?: { readonly from: number; readonly to: number };
  /** The provider's filter withheld the rest of this text. */
  readonly refused?: RefusedPart;
  /** The fallback that wrote it because the provider of the agent's model failed; absent: that model. */
  readonly model?: string;
  readonly text: string;
  readonly blob?: BlobRef;
  readonly calls?: readonly ToolCall[];
  readonly provider?: ProviderItems;
}

/** The result of a call as the model sees it. `blob` has the whole result if `text` is its head and tail. */
export interface ToolMessage extends MessagePosition {
  readonly role: 'tool';
  readonly text: string;
  readonly blob?: BlobRef;
  readonly callId: string;
  /**
   * False: the call failed, or was not executed. True only for a success whose text reads like a
   * failure. Absent: the text shows it; see `failureOf`.
   */
  readonly ok?: boolean;
  /** The screenshot that the tool made; `text` describes it. */
  readonly attachments?: readonly Attachment[];
  /** A person has acknowledged the provider's safety checks. */
  readonly acknowledged?: true;
  readonly refused?: RefusedPart;
  /** The grant under which the call was made without asking again. */
  readonly grant?: string;
  /**
   * What was executed, in one line for people, if a person has changed the arguments of the call;
   * `text` begins with the new arguments.
   */
  readonly edited?: string;
}

/** One message of a run. */
export type Message = UserMessage | AssistantMessage | ToolMessage;

/** Whether a message is part of a side branch: a refused answer, or the request to repair it. */
export function isSide(message: Message): boolean {
  return message.role !== 'tool' && message.side === true;
}

/** Maximum characters of the texts in `latestTexts`. */
const MAX_LATEST = 64 * 1024;

/**
 * Returns the texts of people and the model in messages. Results of tools and a node's message to
 * the model are none.
 */
export function saidTexts(messages: readonly Message[]): readonly SuppliedMessage[] {
  return messages.flatMap((message) => {
    const { role, text } = message;
    if (role === 'tool' || text === '') return [];
    return role === 'user' && message.origin === 'graph' ? [] : [{ role, text }];
  });
}

/** Returns the last texts, as many as fit. */
export function latestTexts(
  texts: readonly SuppliedMessage[],
  last: number,
): readonly SuppliedMessage[] {
  let characters = 0;
  const from = texts.findLastIndex(({ text }) => (characters += text.length) > MAX_LATEST);
  return texts.slice(Math.max(from + 1, texts.length - last));
}

/** Returns the messages without those that a graph refused, and without its answers to them. */
export function withoutRefused(messages: readonly Message[]): readonly Message[] {
  const ranges = messages.flatMap((message) =>
    message.role === 'assistant' && message.refuses
      ? [{ from: message.refuses.from, to: message.n }]
      : [],
  );
  if (ranges.length === 0) return messages;
  return messages.filter(
    (message) =>
      (message.role === 'user' && message.compacts !== undefined) ||
      !ranges.some(({ from, to }) => message.n >= from && message.n <= to),
  );
}

type Unplaced<M> = M extends Message ? Omit<M, keyof MessagePosition> : never;

/** A message without its place in the run. */
export type PromptMessage = Unplaced<Message>;

/** Returns the id of a call. `fork` tells it apart from the calls that a forked run has copied. */
export function callId(place: {
  readonly turn: number;
  readonly step: number;
  readonly index: number;
  readonly fork?: number | undefined;
}): string {
  const run = place.fork === undefined ? '' : `f${place.fork}_`;
  return `call_${run}${place.turn}_${place.step}_${place.index}`;
}

/** Returns turn and step in the id of a call; zeros for an id of another form. */
export function parseCallId({ id }: Pick<ToolCall, 'id'>): {
  readonly turn: number;
  readonly step: number;
} {
  const [, turn = 0, step = 0] = /^call_(?:f\d+_)?(\d+)_(\d+)_\d+$/.exec(id) ?? [];
  return { turn: Number(turn), step: Number(step) };
}
