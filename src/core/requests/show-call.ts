import type { ToolDefinition } from '../definition/definition.js';
import { isObject, parseJson } from '../json.js';
import { escapeJson, printable } from '../text/hidden.js';
import { formatBytes } from '../text/summaries.js';
import type { ToolCall } from '../transcript/messages.js';

/** Characters of all arguments together. What is beyond has to be looked up. */
const MAX_CHARACTERS = 8_000;

/**
 * Returns a call as people see it before they decide: the tool, its effect, its target, the author's
 * description, and every argument exactly as it will be executed. Made by code from the recorded call;
 * nothing of it is the model's prose. Hidden characters are escapes.
 */
export function shownCall(call: ToolCall, tool: ToolDefinition | undefined): string {
  return [titleOf(call, tool), ...describeLine(call), ...argumentLines(call)].join('\n');
}

function titleOf({ name }: ToolCall, tool: ToolDefinition | undefined): string {
  const words = [name];
  if (tool !== undefined) words.push(EFFECTS[tool.effect]);
  if (tool?.mcp) words.push(`MCP server ${tool.mcp.server}`);
  if (tool?.calls) words.push(`agent ${tool.calls.agent}`);
  return printable(words.join(' · ')).replaceAll(/[\n\t]/g, ' ');
}

const EFFECTS = {
  read: 'read: changes nothing',
  keyed: 'keyed: changes something, at most once',
  once: 'once: cannot be taken back or repeated',
} as const;

function describeLine({ summary }: ToolCall): readonly string[] {
  return summary === undefined ? [] : [printable(summary).replaceAll(/[\n\t]/g, ' ')];
}

function argumentLines({ arguments: json, blob }: ToolCall): readonly string[] {
  if (blob !== undefined) {
    return [`[${formatBytes(blob.bytes)} of arguments, stored as blob ${blob.sha256}]`];
  }
  const value = parseJson(json);
  if (!isObject(value)) return [escapeJson(json)];
  let left = MAX_CHARACTERS;
  const lines = Object.entries(value).map(([name, argument]) => {
    const line = `${escapeJson(JSON.stringify(name)).slice(1, -1)}: ${escapeJson(JSON.stringify(argument))}`;
    const shown = line.slice(0, Math.max(0, left)).replace(/[\ud800-\udbff]$/, '');
    left -= line.length;
    return shown.length === line.length
      ? line
      : `${shown}… [cut: ${line.length} characters; the request's \`arguments\` have them all]`;
  });
  return lines.length === 0 ? ['(no arguments)'] : lines;
}
