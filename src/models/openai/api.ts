import type { Capabilities } from '../capabilities.js';
import type { Tell } from '../deltas.js';
import type { ModelReply, ModelRequest } from '../model.js';
import type { Variable } from './native-tools.js';
import type { Sent } from './refusals.js';
import type { ReplySource } from './chat/reply.js';

/** Gathers the events of a stream into the shape of an answer that was sent whole. */
export interface StreamAssembly {
  /** Takes any JSON value. Throws a `ModelError` for an event that says that the answer has failed. */
  add(event: unknown): void;
  /** True once the provider has given its reason to end: only then is the answer whole. */
  isFinished(): boolean;
  /** True when something was said or asked for, so that an end mark alone can make it whole. */
  hasContent(): boolean;
  /** Nothing of the answer is coming yet, or just now: a model may be silent for long before it speaks. */
  isThinking(): boolean;
  answer(): unknown;
}

/** A request as it goes out. */
export interface PreparedRequest {
  readonly body: { readonly stream?: true };
  /** What of it a server may refuse. */
  sent(): readonly Sent[];
}

/** Puts a request on the wire; what it refers to has been read by then. */
export type Prepare = (request: ModelRequest, options: { stream: boolean }) => PreparedRequest;

/** One of the protocols that OpenAI's client speaks. */
export interface OpenAiApi {
  readonly path: string;
  /** Reads once what the request refers to. Rejects with a `ModelError`. */
  preparation(
    request: ModelRequest,
    known: {
      readonly capabilities: Capabilities;
      readonly baseUrl: string;
      readonly variable: Variable;
    },
  ): Promise<Prepare>;
  /** True for a value that holds an answer, whatever else it holds. */
  isAnswer(value: unknown): boolean;
  /** An answer as the reply. Throws nothing but `ModelError`. */
  read(value: unknown, source: ReplySource): ModelReply;
  assemble(tell: Tell, source: ReplySource): StreamAssembly;
}
