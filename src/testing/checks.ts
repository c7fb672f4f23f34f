import { isObject } from '../core/text/json.js';
import { type Step, replyError } from './replies.js';
import { decrypt } from './responses.js';
import { listItems } from './wire-input.js';

/**
 * Describes why the API would refuse the actions on a screen in these items; undefined if it would
 * not.
 */
function findScreenFault(items: readonly Item[]): string | undefined {
  const outputs = items.filter(({ type }) => type === 'computer_call_output');
  const calls = items.filter(({ type }) => type === 'computer_call');
  for (const call of calls) {
    const output = outputs.find(({ call_id: id }) => id === call['call_id']);
    if (output === undefined)
      return `No tool output found for computer call ${String(call['call_id'])}.`;
    const fault = findOutputFault(call, output);
    if (fault !== undefined) return fault;
  }
  const orphan = outputs.find(({ call_id: id }) => !calls.some((call) => call['call_id'] === id));
  if (orphan === undefined) return undefined;
  return `No tool call found for computer call with call_id ${String(orphan['call_id'])}.`;
}

function findOutputFault(call: Item, output: Item): string | undefined {
  const { call_id: id } = call;
  const screenshot = isObject(output['output']) ? output['output'] : {};
  const { type, image_url: url } = screenshot;
  if (type !== 'computer_screenshot' || typeof url !== 'string' || !/^(data:|https:)/.test(url)) {
    return `Computer call output for ${String(id)} has no screenshot.`;
  }
  const acknowledged = listIds(output['acknowledged_safety_checks']);
  const open = listIds(call['pending_safety_checks']).find(
    (check) => !acknowledged.includes(check),
  );
  if (open === undefined) return undefined;
  return `The following safety checks have not been acknowledged: ${JSON.stringify(open)}.`;
}

function listIds(checks: unknown): readonly unknown[] {
  return Array.isArray(checks) ? checks.filter(isObject).map(({ id }) => id) : [];
}

/** The preview tool requires the size of its screen and automatic truncation. */
function findScreenToolFault(body: Item): { message: string; param: string } | undefined {
  const tools: readonly unknown[] = Array.isArray(body['tools']) ? body['tools'] : [];
  for (const [index, tool] of tools.entries()) {
    if (!isObject(tool)) continue;
    if ('handler' in tool) {
      const param = `tools[${index}].handler`;
      return { message: `Unknown parameter: '${param}'.`, param };
    }
    if (tool['type'] !== 'computer_use_preview') continue;
    const missing = ['display_width', 'display_height', 'environment'].find(
      (name) => !(name in tool),
    );
    if (missing !== undefined) {
      const param = `tools[${index}].${missing}`;
      return { message: `Missing required parameter: '${param}'.`, param };
    }
    if (body['truncation'] !== 'auto') {
      return { message: "This model requires truncation to be 'auto'.", param: 'truncation' };
    }
  }
  return undefined;
}

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
  const idsOf = (type: string): readonly unknown[] =>
    items.filter((item) => item['type'] === type).map((item) => item['call_id']);
  const [calls, outputs] = [idsOf('function_call'), idsOf('function_call_output')];
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
