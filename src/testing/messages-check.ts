import { isObject } from '../core/json.js';
import { listBlocks, listObjects } from './messages-input.js';
import { isSignedThought } from './messages.js';
import type { StubRequest } from './requests.js';
import { replyRaw, type Step } from './replies.js';

type AnyObject = Readonly<Record<string, unknown>>;

/**
 * Returns the refusal of a request that Anthropic's API would refuse: without a key or
 * `max_tokens`, with roles that do not alternate, unpaired calls and results, empty texts, or
 * thoughts that were changed.
 */
export function refuseMessages({ headers, body }: StubRequest): Step | undefined {
  if (headers['x-api-key'] === undefined && headers.authorization === undefined) {
    return refuse(401, 'authentication_error', 'An API key is required.');
  }
  if (headers['anthropic-version'] === undefined) {
    return refuse(400, 'invalid_request_error', 'anthropic-version: header is required');
  }
  const message = findFault(body);
  return message === undefined ? undefined : refuse(400, 'invalid_request_error', message);
}

function refuse(status: number, type: string, message: string): Step {
  const body = JSON.stringify({ type: 'error', error: { type, message }, request_id: 'req_stub' });
  return replyRaw(body, { status, headers: { 'request-id': 'req_stub' } }).wire;
}

function findFault(body: AnyObject): string | undefined {
  const { max_tokens: limit, thinking, tool_choice: choice } = body;
  if (!Number.isSafeInteger(limit)) return 'max_tokens: Field required';
  const messages = listObjects(body['messages']);
  if (messages.length === 0) return 'messages: at least one message is required';
  const isForced = isObject(choice) && choice['type'] === 'any';
  if (isForced && isObject(thinking) && thinking['type'] !== 'disabled') {
    return 'Thinking may not be enabled when tool_choice forces tool use.';
  }
  const marks = JSON.stringify(body).split('"cache_control"').length - 1;
  if (marks > 4) return `A maximum of 4 blocks with cache_control may be provided. Found ${marks}.`;
  const hasCalls = messages.some((message) => listUses(message).length > 0);
  if (hasCalls && listObjects(body['tools']).length === 0) {
    return 'Requests which have `tool_use` or `tool_result` blocks in their content must define tools.';
  }
  return messages
    .map((message, index) => findMessageFault(message, index, messages))
    .find((fault) => fault !== undefined);
}

function findMessageFault(
  message: AnyObject,
  index: number,
  messages: readonly AnyObject[],
): string | undefined {
  const place = `messages.${index}`;
  const role = index % 2 === 0 ? 'user' : 'assistant';
  if (message['role'] !== role)
    return `${place}: roles must alternate between "user" and "assistant"`;
  const blocks = listBlocks(message);
  if (blocks.length === 0) return `${place}: all messages must have non-empty content`;
  const last = blocks.at(-1)?.['type'];
  if (last === 'thinking' || last === 'redacted_thinking') {
    return `${place}: The final block in an assistant message cannot be \`thinking\`.`;
  }
  const empty = blocks.findIndex(({ type, text }) => type === 'text' && String(text).trim() === '');
  if (empty >= 0) return `${place}: text content blocks must contain non-whitespace text`;
  const changed = blocks.findIndex(
    (block) => block['type'] === 'thinking' && !isSignedThought(block),
  );
  if (changed >= 0)
    return `${place}.content.${changed}: Invalid \`signature\` in \`thinking\` block`;
  return findUnpaired(blocks, { place, before: messages[index - 1], after: messages[index + 1] });
}

function findUnpaired(
  blocks: readonly AnyObject[],
  {
    place,
    before,
    after,
  }: {
    readonly place: string;
    readonly before: AnyObject | undefined;
    readonly after: AnyObject | undefined;
  },
): string | undefined {
  const answered = after === undefined ? [] : listResults(after);
  const open = listUses({ content: blocks }).find((id) => !answered.includes(id));
  if (open !== undefined) {
    return `${place}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${display(open)}`;
  }
  const uses = before === undefined ? [] : listUses(before);
  const orphan = listResults({ content: blocks }).find((id) => !uses.includes(id));
  if (orphan === undefined) return undefined;
  return `${place}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${display(orphan)}`;
}

function display(id: unknown): string {
  return typeof id === 'string' ? id : JSON.stringify(id);
}

function listUses(message: AnyObject): readonly unknown[] {
  return listBlocks(message).flatMap(({ type, id }) => (type === 'tool_use' ? [id] : []));
}

function listResults(message: AnyObject): readonly unknown[] {
  return listBlocks(message).flatMap((block) =>
    block['type'] === 'tool_result' ? [block['tool_use_id']] : [],
  );
}
