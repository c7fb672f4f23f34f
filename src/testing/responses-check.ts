import { isObject } from '../core/json.js';
import { findScreenFault, findScreenToolFault } from './computer-check.js';
import { decrypt } from './responses.js';
import { listItems } from './responses-input.js';
import { replyError, type Step } from './replies.js';

type Item = Record<string, unknown>;

interface Refusal {
  readonly message: string;
  readonly param?: string;
  readonly code?: string;
}

const OUTPUTS: readonly unknown[] = ['function_call_output', 'computer_call_output'];

/**
 * Returns the refusal of a request that the Responses API would refuse: unpaired calls and outputs,
 * reasoning that is foreign or has lost its following item, tools in the form of the other API.
 */
export function refuseResponses(body: Item): Step | undefined {
  const items = listItems(body);
  const refusal =
    findBadBody(body) ??
    findBadTool(body['tools']) ??
    findScreenToolFault(body) ??
    findBadScreen(items) ??
    findUnpaired(items) ??
    findBadReasoning(items);
  if (refusal === undefined) return undefined;
  return replyError(400, { type: 'invalid_request_error', code: null, param: null, ...refusal })
    .wire;
}

function findBadBody(body: Item): Refusal | undefined {
  if (body['input'] === undefined) {
    return { message: "Missing required parameter: 'input'.", param: 'input' };
  }
  if (body['messages'] !== undefined) {
    return { message: "Unsupported parameter: 'messages'.", param: 'messages' };
  }
  const { previous_response_id: id } = body;
  if (id === undefined || id === null) return undefined;
  const message = `Previous response with id '${display(id)}' not found.`;
  return { message, param: 'previous_response_id', code: 'previous_response_not_found' };
}

function display(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function findBadTool(tools: unknown): Refusal | undefined {
  const list: readonly unknown[] = Array.isArray(tools) ? tools : [];
  const index = list.findIndex(
    (tool) => isObject(tool) && tool['type'] === 'function' && typeof tool['name'] !== 'string',
  );
  if (index < 0) return undefined;
  const param = `tools[${index}].name`;
  return { message: `Missing required parameter: '${param}'.`, param };
}

function findBadScreen(items: readonly Item[]): Refusal | undefined {
  const message = findScreenFault(items);
  return message === undefined ? undefined : { message, param: 'input' };
}

function findUnpaired(items: readonly Item[]): Refusal | undefined {
  const listIds = (type: string): readonly unknown[] =>
    items.filter((item) => item['type'] === type).map((item) => item['call_id']);
  const [calls, outputs] = [listIds('function_call'), listIds('function_call_output')];
  const open = calls.find((id) => !outputs.includes(id));
  if (open !== undefined) {
    return { message: `No tool output found for function call ${display(open)}.`, param: 'input' };
  }
  const orphan = outputs.find((id) => !calls.includes(id));
  if (orphan === undefined) return undefined;
  const message = `No tool call found for function call output with call_id ${display(orphan)}.`;
  return { message, param: 'input' };
}

function findBadReasoning(items: readonly Item[]): Refusal | undefined {
  for (const [index, item] of items.entries()) {
    if (item['type'] !== 'reasoning') continue;
    const name = `'${display(item['id'])}'`;
    const next = items[index + 1];
    if (next === undefined || OUTPUTS.includes(next['type']) || next['role'] === 'user') {
      const message = `Item ${name} of type 'reasoning' was provided without its required following item.`;
      return { message, param: 'input' };
    }
    const { encrypted_content: encrypted } = item;
    if (typeof encrypted !== 'string') {
      const message = `Item with id ${name} not found. Items are not persisted when \`store\` is set to false.`;
      return { message, param: 'input' };
    }
    if (decrypt(encrypted) === undefined) {
      const message = `The encrypted content for item ${display(item['id'])} could not be verified.`;
      return { message, code: 'invalid_encrypted_content' };
    }
  }
  return undefined;
}
