import { isObject } from '../core/json.js';

type Item = Record<string, unknown>;

/**
 * Describes why the API would refuse the actions on a screen in these items; undefined if it would
 * not.
 */
export function findScreenFault(items: readonly Item[]): string | undefined {
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
export function findScreenToolFault(body: Item): { message: string; param: string } | undefined {
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
