import type { ModelCapabilities } from '../capabilities.js';
import type { EmitDelta } from '../deltas.js';
import type { ModelReply, ModelRequest } from '../model.js';
import type { Variable } from './native-tools.js';
import type { SentParameter } from './refusals.js';

/** A protocol: Chat Completions, Responses, or Anthropic's Messages. */
export interface WireApi {
  readonly path: string;
  /** Reads once what the request refers to, such as attachments. Rejects with a `ModelError`. */
  prepare(
    request: ModelRequest,
    context: {
      readonly capabilities: ModelCapabilities;
      readonly baseUrl: string;
      readonly variable: Variable;
    },
  ): Promise<WriteRequest>;
  /** Returns true for a value that holds an answer, whatever else it holds. */
  isAnswer(value: unknown): boolean;
  /** Reads an answer as the reply. Throws a `ModelError` if it is unusable, and no other error. */
  read(value: unknown, source: ReplySource): ModelReply;
  assemble(emit: EmitDelta, source: ReplySource): StreamAssembly;
}

/** Writes a request in the form of the wire, once what it refers to has been read. */
export type WriteRequest = (request: ModelRequest, options: { stream: boolean }) => WrittenRequest;

export interface WrittenRequest {
  readonly body: { readonly stream?: true };
  /** Returns the parameters of the body that a server may refuse. */
  sent(): readonly SentParameter[];
}

/** Which call a reply or an error belongs to, for messages. */
export interface CallPlace {
  /** Without its query, which may hold a secret. */
  readonly baseUrl: string;
  readonly model: string;
  /** False if only a placeholder was sent as the key. */
  readonly hasKey: boolean;
  /** The environment variable that the key comes from. */
  readonly apiKeyEnv: string;
  /** The environment variable with the base URL; default OPENAI_BASE_URL. */
  readonly urlVariable?: string;
  /** Returns the Unix time in milliseconds. */
  readonly now: () => number;
}

/** The HTTP response that a reply came in, and the call that it belongs to. */
export interface ReplySource {
  readonly headers: Headers;
  readonly place: CallPlace;
  /** The tool that executes the model's actions on a screen. */
  readonly computer?: string;
}

/** Assembles the events of a stream into an answer as the API sends it without streaming. */
export interface StreamAssembly {
  /** Takes any JSON value. Throws a `ModelError` for an event that reports an error. */
  add(event: unknown): void;
  /** True once the provider has sent its finish reason: only then is the answer complete. */
  isFinished(): boolean;
  /** True once there is text or a call, so that an end mark alone can complete the answer. */
  hasContent(): boolean;
  /** True while no text or call is in progress: a model may be silent for long while it reasons. */
  isThinking(): boolean;
  answer(): unknown;
}
