import type { AnsweredInput } from '../core/run/contract.js';
import { isJsonObject, isObject, isTooDeep } from '../core/text/json.js';
import type { AskedByServer, ServerAsk } from '../core/transcript/request.js';
import { redact, redactJson } from '../secrets/redact.js';
import { ToolError } from '../tools/errors.js';
import { stripHidden } from './listed-tool.js';

/** Maximum asks in one result, fields of a form, and characters of each part. */
const MAX_ASKS = 10;
const MAX_FIELDS = 50;
const MAX_KEY = 200;
const MAX_MESSAGE = 4_096;
const MAX_FORM = 16 * 1_024;
const MAX_URL = 2_048;
const MAX_STATE = 32 * 1_024;

/** An MCP server has not executed a call, because it asks for input first. */
export class InputRequired extends Error {
  override readonly name = 'InputRequired';
  readonly input: Pick<AskedByServer, 'asks' | 'state'>;
  constructor(input: Pick<AskedByServer, 'asks' | 'state'>) {
    super('the server asks for input before it executes the call');
    this.input = input;
  }
}

/** The parameters by which a call answers what its server has asked. */
interface AnswerParams {
  readonly inputResponses?: AnsweredInput['answers'];
  readonly requestState?: string;
}

/** Returns the parameters of a call that answers; empty for a first call. */
export function answerParams(answered: AnsweredInput | undefined): AnswerParams {
  if (answered === undefined) return {};
  const { answers, state } = answered;
  return {
    ...(Object.keys(answers).length > 0 && { inputResponses: answers }),
    ...(state !== undefined && { requestState: state }),
  };
}

/** Returns whether a server's result asks for input in place of an answer. */
export function isInputRequired(result: unknown): result is Record<string, unknown> {
  return isObject(result) && result['resultType'] === 'input_required';
}

/**
 * Returns what a server asks, as an error that ends this attempt. Throws a `ToolError` if it asks for
 * something that perdure does not do, or in a form that people cannot be shown.
 */
export function readInputRequired(
  { inputRequests, requestState }: Record<string, unknown>,
  server: string,
): InputRequired {
  const refuse = (problem: string): never => {
    throw new ToolError(
      `MCP server "${server}" has not executed the call, because it asks for input that perdure does not give: ${problem}`,
    );
  };
  const requests = Object.entries(isObject(inputRequests) ? inputRequests : {});
  if (requests.length > MAX_ASKS) {
    refuse(`${requests.length} requests at once; at most ${MAX_ASKS} are shown`);
  }
  const state = typeof requestState === 'string' ? requestState : undefined;
  if (state !== undefined && state.length > MAX_STATE) {
    refuse(`its state has ${state.length} characters; at most ${MAX_STATE} are kept`);
  }
  // The history would hold the secret, and without it, the state would be another one.
  if (state !== undefined && redact(state) !== state) refuse("its state holds a worker's secret");
  const asks = requests.map(([key, request]) => {
    const ask = readAsk(key, request);
    return typeof ask === 'string' ? refuse(ask) : ask;
  });
  return new InputRequired({ asks: redactJson(asks), ...(state !== undefined && { state }) });
}

/** Returns what one request asks, or the problem with it. */
function readAsk(key: string, request: unknown): ServerAsk | string {
  const { method, params } = isObject(request) ? request : {};
  if (method !== 'elicitation/create') {
    return `${named(method)}; only elicitation/create is answered, by a person`;
  }
  if (key.length > MAX_KEY) return `a request with a key of ${key.length} characters`;
  const { mode = 'form', message, requestedSchema, url } = isObject(params) ? params : {};
  const ask = { key, message: messageOf(message) };
  if (mode === 'url') {
    const problem = urlProblem(url);
    return problem ?? { ...ask, url: new URL(String(url)).href };
  }
  if (mode !== 'form') return `elicitation in the mode ${named(mode)}; only form and url are known`;
  const problem = formProblem(requestedSchema);
  if (problem !== null) return problem;
  return isJsonObject(requestedSchema)
    ? { ...ask, form: requestedSchema }
    : 'a form without a schema';
}

function named(value: unknown): string {
  return typeof value === 'string' ? stripHidden(value.slice(0, 100)) : 'a request without a name';
}

function messageOf(message: unknown): string {
  const given = typeof message === 'string' ? message : '';
  const cut = given.length - MAX_MESSAGE;
  const text = stripHidden(given.slice(0, MAX_MESSAGE)).trim();
  const kept = text === '' ? '(the server gives no message)' : text;
  return cut > 0 ? `${kept}… [${cut} characters cut]` : kept;
}

/** A person must see where an address leads, so it is a plain one. */
function urlProblem(url: unknown): string | null {
  if (typeof url !== 'string' || url.length > MAX_URL || !URL.canParse(url)) {
    return `an address of at most ${MAX_URL} characters was expected`;
  }
  const { protocol, username, password } = new URL(url);
  if (protocol !== 'https:' && protocol !== 'http:') return `an address with ${protocol}`;
  return username === '' && password === '' ? null : 'an address with a user name in it';
}

function formProblem(schema: unknown): string | null {
  if (!isObject(schema) || schema['type'] !== 'object') return 'a form without a schema';
  if (isTooDeep(schema)) return 'a form whose schema is nested too deeply';
  const { length } = JSON.stringify(schema);
  if (length > MAX_FORM) {
    return `a form whose schema has ${length} characters; at most ${MAX_FORM} are shown`;
  }
  const { properties = {} } = schema;
  if (!isObject(properties) || !Object.values(properties).every(isObject)) {
    return 'a form whose fields are not schemas';
  }
  const { length: fields } = Object.keys(properties);
  return fields > MAX_FIELDS ? `a form of ${fields} fields; at most ${MAX_FIELDS} are shown` : null;
}
