import { computerHandler, nativeToolsOf } from '../../core/input/turn-settings.js';
import { type JsonObject, isObject } from '../../core/text/json.js';
import type { ModelCapabilities } from '../known-models.js';
import {
  type EmitDelta,
  ModelError,
  type ModelReply,
  type ModelRequest,
  type ModelUsage,
} from '../model.js';
import type { SentParameter } from './refusals.js';

/** Looks up a variable of the worker's environment. */
export type Variable = (name: string) => string | undefined;

/** Returns the tools that the provider executes, with the tokens of their variables filled in. */
export function createNativeTools(
  request: ModelRequest,
  variable: Variable,
): readonly JsonObject[] {
  return listNativeTools(request).map((tool): JsonObject => {
    const { authorizationEnv: name, handler: _, ...rest } = tool;
    const approval = tool['type'] === 'mcp' ? { require_approval: 'never' } : {};
    if (typeof name !== 'string') return { ...rest, ...approval };
    const authorization = variable(name)?.trim() ?? '';
    if (authorization !== '') return { ...rest, ...approval, authorization };
    throw new ModelError(
      `settings.nativeTools: ${name} is not set; set it for the worker to the token of ${JSON.stringify(tool['server_label'] ?? tool['type'])}`,
      { kind: 'credentials', type: 'no_credentials' },
    );
  });
}

/** Returns the tokens of these tools, so they can be redacted from every message. */
export function getNativeSecrets(request: ModelRequest, variable: Variable): readonly string[] {
  return listNativeTools(request).flatMap(({ authorizationEnv: name }) => {
    const token = typeof name === 'string' ? variable(name) : undefined;
    return token === undefined || token === '' ? [] : [token];
  });
}

/** Throws a `ModelError` if the request has tools for the provider to execute. */
export function refuseNativeTools(request: ModelRequest, reason: string): void {
  const [tool] = listNativeTools(request);
  if (tool === undefined) return;
  const message = `settings.nativeTools: ${JSON.stringify(tool['type'])} is not available: ${reason}`;
  throw new ModelError(message, { kind: 'request', type: 'no_native_tools' });
}

/** Throws a `ModelError` if the request has a screen, but the model cannot use one. */
export function refuseComputer(
  { settings, model }: ModelRequest,
  accepts: ModelCapabilities,
): void {
  if (accepts.computerUse || computerHandler(settings) === null) return;
  const message =
    `settings.nativeTools: the model "${model}" cannot use a computer; use one that can. If it can, set ` +
    'capabilities: { computerUse: true } at its entry in `models` of the config';
  throw new ModelError(message, { kind: 'request', type: 'no_computer_use' });
}

/** The types of failures of a model that cannot take what a request has, which another one may take. */
export const LACKS: readonly string[] = [
  'no_images',
  'no_files',
  'bad_attachment',
  'no_native_tools',
  'no_computer_use',
];

/** Whether a model, as far as it is known, takes the attachments and the provider's tools of a request. */
export function canTake(request: ModelRequest, accepts: ModelCapabilities): boolean {
  const { messages, settings } = request;
  if (findMissingTool(settings, accepts) !== undefined) return false;
  return messages.every(
    (message) =>
      message.role !== 'user' ||
      (message.attachments ?? []).every(
        ({ type }) => accepts[type === 'image' ? 'images' : 'files'],
      ),
  );
}

/** Returns the first tool of the setting `nativeTools` that a model lacks; undefined if it has all. */
export function findMissingTool(
  { nativeTools }: Readonly<Record<string, unknown>>,
  accepts: ModelCapabilities,
): Readonly<Record<string, unknown>> | undefined {
  if (!Array.isArray(nativeTools)) return undefined;
  return nativeTools
    .filter(isObject)
    .find((one) => !accepts['handler' in one ? 'computerUse' : 'nativeTools']);
}

function listNativeTools({ settings }: ModelRequest) {
  try {
    return nativeToolsOf(settings['nativeTools'], 'settings.nativeTools');
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new ModelError(message, { kind: 'request', type: 'bad_setting' });
  }
}

/** A protocol: Chat Completions, Responses, or Anthropic's Messages. */
export interface WireApi {
  readonly path: string;
  /** The names of a tool's properties that the API accepts; undefined: any. */
  readonly propertyNames: RegExp | undefined;
  /**
   * Reads the data to which the request refers, such as attachments, once. Rejects with a
   * `ModelError`.
   */
  prepare(
    request: ModelRequest,
    context: {
      readonly capabilities: ModelCapabilities;
      readonly baseUrl: string;
      readonly variable: Variable;
    },
  ): Promise<WriteRequest>;
  /** Returns true for a value that contains an answer, regardless of other content. */
  isAnswer(value: unknown): boolean;
  /** Returns true for an event of a stream that holds the whole answer, as an unstreamed body does. */
  isWhole(event: unknown): boolean;
  /** Returns true for an event that only a complete answer has at its end. */
  isEnd(event: unknown): boolean;
  /** Returns the usage of an answer; undefined if there is none. */
  readUsage(value: unknown): ModelUsage | undefined;
  /** Reads an answer as the reply. Throws only a `ModelError`, if it is unusable. */
  read(value: unknown, source: ReplySource): ModelReply;
  assemble(emit: EmitDelta, source: ReplySource): StreamAssembly;
}

/** Writes a request in the API's form, after the data to which it refers has been read. */
type WriteRequest = (request: ModelRequest, options: { stream: boolean }) => WrittenRequest;

interface WrittenRequest {
  readonly body: { readonly stream?: true };
  /** Returns the parameters of the body that a server may refuse. */
  sent(): readonly SentParameter[];
}

/** The call to which a reply or an error belongs, for messages. */
export interface ReplyPlace {
  /** Without its query, which may hold a secret. */
  readonly baseUrl: string;
  readonly model: string;
  /** False if only a placeholder was sent as the key. */
  readonly hasKey: boolean;
  /** The environment variable that holds the key. */
  readonly apiKeyEnv: string;
  /** The environment variable with the base URL; default OPENAI_BASE_URL. */
  readonly urlVariable?: string;
  /** Returns the Unix time in milliseconds. */
  readonly now: () => number;
  /** The key and the address belong to an object that the config creates, not to variables. */
  readonly isConfigured?: true;
}

/** The HTTP response of a reply, and the call to which it belongs. */
export interface ReplySource {
  readonly headers: Headers;
  readonly place: ReplyPlace;
  /** The tool that executes the model's actions on a screen. */
  readonly computer?: string;
  /** True if the reply may be empty: the model has the results of its calls and nothing to add. */
  readonly mayBeEmpty?: boolean;
}

/** Assembles the events of a stream into the API's unstreamed answer. */
export interface StreamAssembly {
  /** Accepts any JSON value. Throws a `ModelError` for an event that reports an error. */
  add(event: unknown): void;
  /** True once the provider has sent its finish reason: only then is the answer complete. */
  isFinished(): boolean;
  /** True once there is text or a call, so that an end mark alone can complete the answer. */
  hasContent(): boolean;
  /**
   * True while no text or call is in progress: a model may be silent for a long time while it
   * reasons.
   */
  isThinking(): boolean;
  answer(): unknown;
}
