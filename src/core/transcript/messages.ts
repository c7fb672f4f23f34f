import type { JsonObject } from '../json.js';

/** Where a text that is too large for the history lies. Content-addressed, therefore immutable. */
export interface BlobRef {
  /** SHA-256 of the UTF-8 bytes, hex. */
  readonly sha256: string;
  /** Size of the whole text in UTF-8 bytes. */
  readonly bytes: number;
}

/** Where the context of a run lies. */
export interface ContextRef extends BlobRef {
  /** Id of the run that owns it: this one, or the one above all its callers. */
  readonly root?: string;
}

/** A tool's value that is kept whole and handed on by its name, as the worker records it. */
export interface ArtifactMade {
  /** 1 to 64 of a–z, 0–9, `_` and `-`. */
  readonly name: string;
  /** The value as JSON, or as it is where it is a text. */
  readonly blob: BlobRef;
  /** For the model: `array of 300`, `object with keys …`. */
  readonly kind: string;
  readonly text?: true;
  /** In the author's words, one line. */
  readonly summary?: string;
}

/** One that the run knows by name. */
export interface Artifact extends ArtifactMade {
  /** The name that its tool gave it, where that meant another value and this one has a number. */
  readonly base?: string;
  /** The tool and the call that made it. */
  readonly tool: string;
  readonly call: string;
}

/**
 * What is sent along with a message: only ever what somebody attached on purpose, never a path or an
 * address that stood in a text. By reference, the blob holds the bytes as base64 text.
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

/** Why a call cannot be executed; found beside the model's reply, before anything runs. */
export interface CallProblem {
  readonly type: 'unknown_tool' | 'invalid_json' | 'invalid_arguments' | 'truncated';
  /** For the model: what is wrong, with the path, and what would be right. */
  readonly message: string;
}

/** A provider's doubt about a call, in its own words. */
export interface SafetyCheck {
  readonly id: string;
  readonly code?: string;
  readonly message?: string;
}

/** One tool call as the model asked for it, before it has its place in the run. */
export interface AskedCall {
  readonly name: string;
  /**
   * The arguments as JSON text, always valid JSON. When the real ones lie in `blob`, this is a
   * short stand-in that the model sees in later requests.
   */
  readonly arguments: string;
  /** SHA-256 (hex) of the canonical form of the real arguments. */
  readonly digest: string;
  readonly blob?: BlobRef;
  readonly problem?: CallProblem;
  /** For people, made by the tool's `describe`; absent where the tool has none. */
  readonly summary?: string;
  /** Asked by the provider before this is executed; only a person may answer. */
  readonly safety?: readonly SafetyCheck[];
  /** Asked for by `invoke_tool`; where that agent's model reads it again, it is shown as it was asked. */
  readonly via?: 'catalog';
}

/**
 * What a provider wants to get back of its own reply beside texts and calls, in later requests: what
 * the model thought, what the provider looked up by itself. Only its adapter can read it.
 */
export interface ProviderItems {
  /** Names provider and model; nobody else is given them. */
  readonly from: string;
  /** In the order of the reply. Absent where they are large; `blob` then holds them as JSON. */
  readonly items?: readonly JsonObject[];
  readonly blob?: BlobRef;
}

/** A call with its identity. */
export interface ToolCall extends AskedCall {
  /** Unique in the run: `call_<turn>_<step>_<index>`, `call_f<fork>_…` in one that was forked. Never the provider's id, which may repeat or miss. */
  readonly id: string;
}

interface Placed {
  /** Position in all that was said in the run, from 0; goes on through turns and segments. */
  readonly n: number;
  readonly turn: number;
  readonly step: number;
  /** Unix time in milliseconds, by the workflow's clock. */
  readonly at: number;
}

export interface UserMessage extends Placed {
  readonly role: 'user';
  readonly text: string;
  readonly attachments?: readonly Attachment[];
  /**
   * `perdure`: written by the engine (the closing instruction, a summary), not by a person.
   * `retrieved`: a document that the agent's `retrieve` has found.
   */
  readonly origin?: 'perdure' | 'retrieved';
  /** Which document it is, as far as `retrieve` has said. */
  readonly document?: { readonly id?: string; readonly source?: string };
  /** The whole of a document of which the text is head and tail. */
  readonly blob?: BlobRef;
  /** The id under which it was sent. */
  readonly id?: string;
  /** Who sent it, as the sender claims; the model never sees it. */
  readonly by?: string;
  /** Stays word for word when older messages are summarized. */
  readonly pinned?: true;
  /** Part of a side branch: not in the canonical transcript. */
  readonly side?: true;
  /** This is a summary; these messages, by `n` and both ends included, it stands for in the prompt. */
  readonly compacts?: { readonly from: number; readonly to: number };
}

export interface AssistantMessage extends Placed {
  readonly role: 'assistant';
  /** Part of a side branch: an answer that was refused. */
  readonly side?: true;
  readonly text: string;
  readonly blob?: BlobRef;
  readonly calls?: readonly ToolCall[];
  readonly provider?: ProviderItems;
}

export interface ToolMessage extends Placed {
  readonly role: 'tool';
  readonly text: string;
  readonly blob?: BlobRef;
  readonly callId: string;
  /** The picture that a `screenshot` brought; `text` only says so. */
  readonly attachments?: readonly Attachment[];
  /** A person has acknowledged what the provider wanted to be looked at. */
  readonly acknowledged?: true;
}

/** One entry of the canonical transcript: what was said, once, in order. */
export type Message = UserMessage | AssistantMessage | ToolMessage;

/** Said in a side branch: an attempt at an answer that was refused, or what the model was told of it. */
export function isSide(message: Message): boolean {
  return message.role !== 'tool' && message.side === true;
}

type Unplaced<M> = M extends Message ? Omit<M, keyof Placed> : never;

/** What the model sees of a message; the part that the digest chain covers. */
export type PromptMessage = Unplaced<Message>;

/** `fork`: where the run was forked; what it took over has ids of the same turns and steps. */
export function callId(place: {
  readonly turn: number;
  readonly step: number;
  readonly index: number;
  readonly fork?: number | undefined;
}): string {
  const run = place.fork === undefined ? '' : `f${place.fork}_`;
  return `call_${run}${place.turn}_${place.step}_${place.index}`;
}
